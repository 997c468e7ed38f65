-- attribs
local x <const> = 5 local y <close> = setmetatable({}, {__close=function() print"closed" end}) print(x)
--[====[ expect
print: 5
print: closed
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
