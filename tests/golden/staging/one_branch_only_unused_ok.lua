-- one branch only unused ok
local y if i > 0 then y = zeros(f32,4) a.C:store({0}, y) end
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = gt %9, %11 : bool
    if %12 {
      %13 = const 0.0 : f32
      %14 "y" = splat %13 : f32(4)
      %15 = const 0 : index
      store %2, %15, %14
      yield
    } else {
      yield
    }
    return
  }
}
]====]
