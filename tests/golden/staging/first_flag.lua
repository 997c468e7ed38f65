-- first flag
local first, s = true, zeros(f32,4) for k in range(0,d.K,32) do if first then s = s + 1 else s = s + 2 end first = false end a.C:store({0}, s)
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "s" = splat %11 : f32(4)
    %13 = const 0 : index
    %14 = const 32 : index
    %15 = const true : bool
    %16 "first", %17 "s" = for %18 "k": index = %13, %3, %14 carry(%19 "first": bool = %15, %20 "s": f32(4) = %12) : bool, f32(4) {
      %21 "s" = if %19 : f32(4) {
        %22 = const 1.0 : f32
        %23 = splat %22 : f32(4)
        %24 "s" = add %20, %23 : f32(4)
        yield %24
      } else {
        %25 = const 2.0 : f32
        %26 = splat %25 : f32(4)
        %27 "s" = add %20, %26 : f32(4)
        yield %27
      }
      %28 = const false : bool
      yield %28, %21
    }
    %29 = const 0 : index
    store %2, %29, %17
    return
  }
}
]====]
