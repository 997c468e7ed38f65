-- metatable operators
local V=setmetatable({},{__call=function(c,x) return setmetatable({x=x},c) end}) V.__index=V V.__add=function(p,q) return V(p.x+q.x) end V.__eq=function(p,q) return true end V.__lt=function(p,q) return p.x<q.x end print((V(1)+V(2)).x, tostring(V(1)==V(2)), tostring(V(1)<V(2)), tostring(V(1)~=V(3)))
--[====[ expect
print: 3	true	true	false
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
