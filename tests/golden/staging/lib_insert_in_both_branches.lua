-- library: a list grows alike in both branches
local t = {1} if i > 0 then table.insert(t, 2) else t[#t + 1] = 3 end a.C:store({t[2], #t}, zeros(f32, 1, 1))
-- args: out("C", f32, "L", "M")
--[====[ expect
  body(%0 "C": view f32(?,?), %1 "L": index, %2 "M": index, %3: index, %4: index) {
    %5 = const 0 : index
    %6 = gt %3, %5 : bool
    %7 "field '2'" = if %6 : index {
      %8 = const 2 : index
      yield %8
    } else {
      %9 = const 3 : index
      yield %9
    }
    %10 = const 0.0 : f32
    %11 = splat %10 : f32(1,1)
    %12 = const 2 : index
    store %0, %7, %12, %11
    return
  }
}
]====]
