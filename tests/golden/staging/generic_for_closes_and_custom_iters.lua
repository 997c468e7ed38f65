-- generic for closes and custom iters
local function it(n) local q=0 return function() q=q+1 if q<=n then return q,q*q end end end for x,y in it(3) do print(x,y) end for k,v in pairs{7} do print(k,v) end
--[====[ expect
print: 1	1
print: 2	4
print: 3	9
print: 1	7
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
