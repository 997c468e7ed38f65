-- shadowing
local x = zeros(f32,4) for k in range(0,d.K,32) do local x = x + 1 x = x * 2 a.C:store({k}, x) end a.C:store({0}, x)
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "x" = splat %11 : f32(4)
    %13 = const 0 : index
    %14 = const 32 : index
    for %15 "k": index = %13, %3, %14 {
      %16 = const 1.0 : f32
      %17 = splat %16 : f32(4)
      %18 "x" = add %12, %17 : f32(4)
      %19 = const 2.0 : f32
      %20 = splat %19 : f32(4)
      %21 "x" = mul %18, %20 : f32(4)
      store %2, %15, %21
      yield
    }
    %22 = const 0 : index
    store %2, %22, %12
    return
  }
}
]====]
