-- dev == nil is plain false
local x = zeros(f32,4) if x == nil then print"bad" else print"ok" end if x then end
--[====[ expect
print: ok
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "x" = splat %11 : f32(4)
    return
  }
}
]====]
