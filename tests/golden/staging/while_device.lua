-- while device
local x = i while x > 0 do x = x // 2 end a.C:store({x}, zeros(f32,1))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9 "x": index, %10: index) {
    %11 "x" = while (%12 "x": index = %9) : index {
      %13 = const 0 : index
      %14 = gt %12, %13 : bool
      condition %14, %12
    } do (%15 "x": index) {
      %16 = const 2 : index
      %17 "x" = floordiv %15, %16 : index
      yield %17
    }
    %18 = const 0.0 : f32
    %19 = splat %18 : f32(1)
    store %2, %11, %19
    return
  }
}
]====]
