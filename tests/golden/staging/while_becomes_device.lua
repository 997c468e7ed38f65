-- while becomes device
local x, n = 3, 0 while x > 0 do x = x - i n = n + 1 end a.C:store({n}, zeros(f32,1))
--[====[ expect
while_becomes_device.lua:2:19: warning: the condition of this `while` became a device value after 1 iteration, which was unrolled [K0307]
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 3 : index
    %12 "x" = sub %11, %9 : index
    %13 = const 1 : index
    %14 "x", %15 "n" = while (%16 "x": index = %12, %17 "n": index = %13) : index, index {
      %18 = const 0 : index
      %19 = gt %16, %18 : bool
      condition %19, %16, %17
    } do (%20 "x": index, %21 "n": index) {
      %22 "x" = sub %20, %9 : index
      %23 = const 1 : index
      %24 "n" = add %21, %23 : index
      yield %22, %24
    }
    %25 = const 0.0 : f32
    %26 = splat %25 : f32(1)
    store %2, %15, %26
    return
  }
}
]====]
