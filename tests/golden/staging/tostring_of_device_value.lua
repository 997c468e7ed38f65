-- tostring of device values shows dtype and shape, and ids of no kind
print(tostring(i), tostring(zeros(bf16, 4, 8)), tostring(a.A), type(i), type(a.A), type(zeros(f32, 1)))
print(f32, tostring(e4m3), f32 == f32, f32 == bf16, zeros(f16, 2).dtype == f16)
--[====[ expect
print: index	bf16(4,8)	tensor A bf16(K)	scalar	tensor	tile
print: f32	e4m3	true	false	true
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : bf16
    %12 = splat %11 : bf16(4,8)
    %13 = const 0.0 : f32
    %14 = splat %13 : f32(1)
    %15 = const 0.0 : f16
    %16 = splat %15 : f16(2)
    return
  }
}
]====]
