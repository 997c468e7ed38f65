-- carried int counter
local n = 0 for k in range(0,d.K,32) do n = n + 1 end a.C:store({n}, zeros(f32,1))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = const 32 : index
    %13 = const 0 : index
    %14 "n" = for %15 "k": index = %11, %3, %12 carry(%16 "n": index = %13) : index {
      %17 = const 1 : index
      %18 "n" = add %16, %17 : index
      yield %18
    }
    %19 = const 0.0 : f32
    %20 = splat %19 : f32(1)
    store %2, %14, %20
    return
  }
}
]====]
