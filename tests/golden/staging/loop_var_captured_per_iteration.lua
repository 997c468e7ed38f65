-- loop var captured per iteration
local fs={} for r=1,3 do fs[r]=function() r = r + 1 return r end end print(fs[1](),fs[1](),fs[2]())
--[====[ expect
print: 2	3	3
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
