-- long strings, escapes, numerals
print([==[a
b]==], "\z
   x\65\x41\u{41}", 0x10, 1e2, 0xA.8p1, 3//2, 1<<4, ~0, 'q\'') -- c
--[[ multi
line ]] print(1)
--[====[ expect
print: a
print: b	xAAA	16	100.0	21.0	1	16	-1	q'
print: 1
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
