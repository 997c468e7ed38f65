-- Device if in device loop with carried
local s,n=zeros(f32,4),0 for k in range(0,d.K,32) do if k > 64 then s = s + 1 n = n + 1 else s = s - 1 end end a.C:store({n}, s)
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "s" = splat %11 : f32(4)
    %13 = const 0 : index
    %14 = const 32 : index
    %15 = const 0 : index
    %16 "s", %17 "n" = for %18 "k": index = %13, %3, %14 carry(%19 "s": f32(4) = %12, %20 "n": index = %15) : f32(4), index {
      %21 = const 64 : index
      %22 = gt %18, %21 : bool
      %23 "s", %24 "n" = if %22 : f32(4), index {
        %25 = const 1.0 : f32
        %26 = splat %25 : f32(4)
        %27 "s" = add %19, %26 : f32(4)
        %28 = const 1 : index
        %29 "n" = add %20, %28 : index
        yield %27, %29
      } else {
        %30 = const 1.0 : f32
        %31 = splat %30 : f32(4)
        %32 "s" = sub %19, %31 : f32(4)
        yield %32, %20
      }
      yield %23, %24
    }
    store %2, %17, %16
    return
  }
}
]====]
