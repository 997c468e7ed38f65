-- integer/float keys, negative zero
local t={} t[1.0]=5 t[2^53]=6 print(t[1], 1e15, 2^31, -0.0, 1/0, 10//0.0)
--[====[ expect
print: 5	1e+15	2147483648.0	-0.0	inf	inf
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
