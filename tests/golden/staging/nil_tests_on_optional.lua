-- nil tests on optional
if a.bias == nil then print"no bias" end if a.A ~= nil then print"A" end if not a.bias then print"nb" end if d.M ~= nil and a.bias == nil then print"both" end
--[====[ expect
print: no bias
print: A
print: nb
print: both
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
