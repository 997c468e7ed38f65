-- assignment order
local i2,t=1,{} i2, t[i2] = i2+1, 20 print(i2, t[1], tostring(t[2]))
--[====[ expect
print: 2	20	nil
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
