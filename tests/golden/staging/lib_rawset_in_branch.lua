-- library: rawset is journalled
local t = {n = 1} if i > 0 then rawset(t, "n", 2) end a.C:store({t.n}, zeros(f32, 1))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = gt %9, %11 : bool
    %13 "field 'n'" = if %12 : index {
      %14 = const 2 : index
      yield %14
    } else {
      %15 = const 1 : index
      yield %15
    }
    %16 = const 0.0 : f32
    %17 = splat %16 : f32(1)
    store %2, %13, %17
    return
  }
}
]====]
