-- recursive local function reassigned
local function f(n) if n==0 then return 0 end return 1+f(n-1) end local g=f f=function() return 100 end print(g(3))
--[====[ expect
print: 101
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
