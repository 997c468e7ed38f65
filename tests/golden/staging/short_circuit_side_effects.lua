-- short circuit side effects
local n=0 local function f(v) n=n+1 return v end
  local r = f(false) and f(1) or f(nil) or f(2) print(r,n) local q = f(1) or f(2) print(q,n) print(tostring(nil and f(3)), tostring(false or nil), n)
--[====[ expect
print: 2	3
print: 1	4
print: nil	nil	4
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
