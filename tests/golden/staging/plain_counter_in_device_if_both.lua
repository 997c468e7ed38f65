-- plain counter in device if both
local n=0 if i>0 then n = n+1 else n = n+1 end a.C:store({n+0}, zeros(f32,1))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = gt %9, %11 : bool
    if %12 {
      yield
    } else {
      yield
    }
    %13 = const 0.0 : f32
    %14 = splat %13 : f32(1)
    %15 = const 1 : index
    store %2, %15, %14
    return
  }
}
]====]
