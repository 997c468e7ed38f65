-- short circuit ...
local function g(...) local x = ... and select('#',...) or 'none' return x, (... or 7) end print(g(4,5)) print(g()) print(g(false,1))
--[====[ expect
print: 2	4
print: none	7
print: none	7
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
