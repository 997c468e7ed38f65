-- plain loop in device loop
local s=zeros(f32,4,1) for k in range(0,d.K,32) do for r=1,3 do s = s + r end for _,v in ipairs{1,2} do s = s*v end end a.C:store({0,0},s)
-- args: tensor("A", bf16, "K"), tensor("E", f32, "M", "N", "S", "T"), out("C", f32, "L", "P")
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?,?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9 "P": index, %10: index, %11: index) {
    %12 = const 0.0 : f32
    %13 "s" = splat %12 : f32(4,1)
    %14 = const 0 : index
    %15 = const 32 : index
    %16 "s" = for %17 "k": index = %14, %3, %15 carry(%18 "s": f32(4,1) = %13) : f32(4,1) {
      %19 = const 1.0 : f32
      %20 = splat %19 : f32(4,1)
      %21 "s" = add %18, %20 : f32(4,1)
      %22 = const 2.0 : f32
      %23 = splat %22 : f32(4,1)
      %24 "s" = add %21, %23 : f32(4,1)
      %25 = const 3.0 : f32
      %26 = splat %25 : f32(4,1)
      %27 "s" = add %24, %26 : f32(4,1)
      %28 = const 1.0 : f32
      %29 = splat %28 : f32(4,1)
      %30 "s" = mul %27, %29 : f32(4,1)
      %31 = const 2.0 : f32
      %32 = splat %31 : f32(4,1)
      %33 "s" = mul %30, %32 : f32(4,1)
      yield %33
    }
    %34 = const 0 : index
    %35 = const 0 : index
    store %2, %34, %35, %16
    return
  }
}
]====]
