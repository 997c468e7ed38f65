-- goto continue in device loop
local s=zeros(f32,4) for k in range(0,d.K,32) do for r=1,4 do if r%2==0 then goto continue end s = s + r ::continue:: end end a.C:store({0},s)
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "s" = splat %11 : f32(4)
    %13 = const 0 : index
    %14 = const 32 : index
    %15 "s" = for %16 "k": index = %13, %3, %14 carry(%17 "s": f32(4) = %12) : f32(4) {
      %18 = const 1.0 : f32
      %19 = splat %18 : f32(4)
      %20 "s" = add %17, %19 : f32(4)
      %21 = const 3.0 : f32
      %22 = splat %21 : f32(4)
      %23 "s" = add %20, %22 : f32(4)
      yield %23
    }
    %24 = const 0 : index
    store %2, %24, %15
    return
  }
}
]====]
