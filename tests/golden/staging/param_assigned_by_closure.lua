-- param assigned by closure
local function f(x) local function g() x = x + 1 end g() g() return x end print(f(3))
--[====[ expect
print: 5
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
