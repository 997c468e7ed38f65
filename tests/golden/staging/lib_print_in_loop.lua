-- library: print of plain values acts once
for k in range(0, d.K, 32) do print("once") a.C:store({k}, zeros(f32, 1)) end
--[====[ expect
print: once
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = const 32 : index
    for %13 "k": index = %11, %3, %12 {
      %14 = const 0.0 : f32
      %15 = splat %14 : f32(1)
      store %2, %13, %15
      yield
    }
    return
  }
}
]====]
