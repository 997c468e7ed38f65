-- swap in loop
local x,y = zeros(f32,4), full(f32,1,4) for k in range(0,d.K,32) do x, y = y, x end a.C:store({0}, x) a.C:store({1}, y)
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "x" = splat %11 : f32(4)
    %13 = const 1.0 : f32
    %14 "y" = splat %13 : f32(4)
    %15 = const 0 : index
    %16 = const 32 : index
    %17 "x", %18 "y" = for %19 "k": index = %15, %3, %16 carry(%20 "x": f32(4) = %12, %21 "y": f32(4) = %14) : f32(4), f32(4) {
      yield %21, %20
    }
    %22 = const 0 : index
    store %2, %22, %17
    %23 = const 1 : index
    store %2, %23, %18
    return
  }
}
]====]
