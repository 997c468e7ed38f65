-- repeat until plain
local n=0 repeat local k=n n=n+1 until k>=3 print(n)
--[====[ expect
print: 4
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
