-- recursion in device loop
local function pow(x,n) if n==0 then return 1.0 elseif n%2==0 then local h=pow(x,n//2) return h*h else return x*pow(x,n-1) end end local s=zeros(f32,4) for k in range(0,d.K,32) do s = s + pow(full(f32,2,4),5) end a.C:store({0},s)
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "s" = splat %11 : f32(4)
    %13 = const 0 : index
    %14 = const 32 : index
    %15 "s" = for %16 "k": index = %13, %3, %14 carry(%17 "s": f32(4) = %12) : f32(4) {
      %18 = const 2.0 : f32
      %19 = splat %18 : f32(4)
      %20 = const 1.0 : f32
      %21 = splat %20 : f32(4)
      %22 "h" = mul %19, %21 : f32(4)
      %23 "h" = mul %22, %22 : f32(4)
      %24 = mul %23, %23 : f32(4)
      %25 = mul %19, %24 : f32(4)
      %26 "s" = add %17, %25 : f32(4)
      yield %26
    }
    %27 = const 0 : index
    store %2, %27, %15
    return
  }
}
]====]
