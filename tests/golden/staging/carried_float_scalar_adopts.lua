-- carried float scalar adopts
local s = 0 for k in range(0,d.K,32) do s = s + sum(a.A:tile({k},{4})) end a.C:store({0}, s)
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = const 32 : index
    %13 = const 0.0 : bf16
    %14 "s" = for %15 "k": index = %11, %3, %12 carry(%16 "s": bf16 = %13) : bf16 {
      %17 = load %0, %15 : bf16(4)
      %18 = cast %17 : f32(4)
      %19 = reduce_sum %18 {axis = 0} : f32(1)
      %20 = item %19 : f32
      %21 = cast %20 : bf16
      %22 "s" = add %16, %21 : bf16
      yield %22
    }
    %23 = const 0 : index
    %24 = splat %14 : bf16(1)
    %25 = cast %24 : f32(1)
    store %2, %23, %25
    return
  }
}
]====]
