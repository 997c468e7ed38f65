-- list local to body
for k in range(0,d.K,32) do local t={} for r=1,3 do t[#t+1]=zeros(f32,4)+r end a.C:store({k}, t[1]+t[2]+t[3]) end
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = const 32 : index
    for %13 "k": index = %11, %3, %12 {
      %14 = const 0.0 : f32
      %15 = splat %14 : f32(4)
      %16 = const 1.0 : f32
      %17 = splat %16 : f32(4)
      %18 = add %15, %17 : f32(4)
      %19 = const 0.0 : f32
      %20 = splat %19 : f32(4)
      %21 = const 2.0 : f32
      %22 = splat %21 : f32(4)
      %23 = add %20, %22 : f32(4)
      %24 = const 0.0 : f32
      %25 = splat %24 : f32(4)
      %26 = const 3.0 : f32
      %27 = splat %26 : f32(4)
      %28 = add %25, %27 : f32(4)
      %29 = add %18, %23 : f32(4)
      %30 = add %29, %28 : f32(4)
      store %2, %13, %30
      yield
    }
    return
  }
}
]====]
