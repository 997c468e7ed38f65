-- pairs goes in sorted key order: numbers, strings, booleans
for k, v in pairs{b = 1, a = 2, [3] = 3, [1] = 4, [2.5] = 5, [true] = 6} do print(k, v) end
--[====[ expect
print: 1	4
print: 2.5	5
print: 3	3
print: a	2
print: b	1
print: true	6
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
