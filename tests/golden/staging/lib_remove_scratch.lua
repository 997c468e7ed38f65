-- library: push and pop within an iteration
local stack = {5} for k in range(0, d.K, 32) do table.insert(stack, 7) local x = table.remove(stack) a.C:store({k + x}, zeros(f32, 1)) end
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = const 32 : index
    for %13 "k": index = %11, %3, %12 {
      %14 = const 7 : index
      %15 = add %13, %14 : index
      %16 = const 0.0 : f32
      %17 = splat %16 : f32(1)
      store %2, %15, %17
      yield
    }
    return
  }
}
]====]
