-- loop index after loop
local last = 0 for k in range(0,d.K,32) do last = k end a.C:store({last}, zeros(f32,1))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = const 32 : index
    %13 = const 0 : index
    %14 "last" = for %15 "k": index = %11, %3, %12 carry(%16 "last": index = %13) : index {
      yield %15
    }
    %17 = const 0.0 : f32
    %18 = splat %17 : f32(1)
    store %2, %14, %18
    return
  }
}
]====]
