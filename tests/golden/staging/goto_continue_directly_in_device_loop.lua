-- goto continue directly in device loop
for k in range(0,d.K,32) do if c.causal then goto continue end a.C:store({k}, zeros(f32,1)) ::continue:: end
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = const 32 : index
    for %13 "k": index = %11, %3, %12 {
      yield
    }
    return
  }
}
]====]
