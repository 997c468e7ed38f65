-- a number beside a device scalar takes its dtype
local x = f32(0.5)
local y = 2
if i > 0 then
  x = 3
  y = f32(1) + x
end
a.C:store({0}, x * y)
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 "x" = const 0.5 : f32
    %12 = const 0 : index
    %13 = gt %9, %12 : bool
    %14 "x", %15 "y" = if %13 : f32, f32 {
      %16 = const 1.0 : f32
      %17 = const 3.0 : f32
      %18 "y" = add %16, %17 : f32
      %19 = const 3.0 : f32
      yield %19, %18
    } else {
      %20 = const 2.0 : f32
      yield %11, %20
    }
    %21 = mul %14, %15 : f32
    %22 = const 0 : index
    %23 = splat %21 : f32(1)
    store %2, %22, %23
    return
  }
}
]====]
