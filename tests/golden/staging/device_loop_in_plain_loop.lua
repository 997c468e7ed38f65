-- device loop in plain loop
local s=zeros(f32,4,1) for r=1,3 do for k in range(0,d.K,32) do s = s + r end end a.C:store({0,0},s)
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
      yield %21
    }
    %22 = const 0 : index
    %23 = const 32 : index
    %24 "s" = for %25 "k": index = %22, %3, %23 carry(%26 "s": f32(4,1) = %16) : f32(4,1) {
      %27 = const 2.0 : f32
      %28 = splat %27 : f32(4,1)
      %29 "s" = add %26, %28 : f32(4,1)
      yield %29
    }
    %30 = const 0 : index
    %31 = const 32 : index
    %32 "s" = for %33 "k": index = %30, %3, %31 carry(%34 "s": f32(4,1) = %24) : f32(4,1) {
      %35 = const 3.0 : f32
      %36 = splat %35 : f32(4,1)
      %37 "s" = add %34, %36 : f32(4,1)
      yield %37
    }
    %38 = const 0 : index
    %39 = const 0 : index
    store %2, %38, %39, %32
    return
  }
}
]====]
