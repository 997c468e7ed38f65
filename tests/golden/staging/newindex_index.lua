-- __newindex/__index
local log2={} local p=setmetatable({},{__newindex=function(t,k,v) rawset(t,k,v*2) end,__index=function(_,k) return k.."!" end}) p.x=4 print(p.x,p.y)
--[====[ expect
print: 8	y!
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
