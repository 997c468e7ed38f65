-- nested device loops
local s = zeros(f32,64,1) for x in range(0,d.M,64) do local q = zeros(f32,64,1) for y in range(0,d.N,64) do q = q + 1 s = s + q end s = s * 2 end a.C:store({0,0}, s)
-- args: tensor("A", bf16, "K"), tensor("E", f32, "M", "N", "S", "T"), out("C", f32, "L", "P")
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?,?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9 "P": index, %10: index, %11: index) {
    %12 = const 0.0 : f32
    %13 "s" = splat %12 : f32(64,1)
    %14 = const 0 : index
    %15 = const 64 : index
    %16 "s" = for %17 "x": index = %14, %4, %15 carry(%18 "s": f32(64,1) = %13) : f32(64,1) {
      %19 = const 0.0 : f32
      %20 "q" = splat %19 : f32(64,1)
      %21 = const 0 : index
      %22 = const 64 : index
      %23 "s", %24 "q" = for %25 "y": index = %21, %5, %22 carry(%26 "s": f32(64,1) = %18, %27 "q": f32(64,1) = %20) : f32(64,1), f32(64,1) {
        %28 = const 1.0 : f32
        %29 = splat %28 : f32(64,1)
        %30 "q" = add %27, %29 : f32(64,1)
        %31 "s" = add %26, %30 : f32(64,1)
        yield %31, %30
      }
      %32 = const 2.0 : f32
      %33 = splat %32 : f32(64,1)
      %34 "s" = mul %23, %33 : f32(64,1)
      yield %34
    }
    %35 = const 0 : index
    %36 = const 0 : index
    store %2, %35, %36, %16
    return
  }
}
]====]
