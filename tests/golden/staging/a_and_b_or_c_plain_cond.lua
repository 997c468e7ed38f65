-- a and b or c: plain cond
local x = c.causal and d.T or 5 local y = not c.causal and 1 or d.M a.C:store({x,y}, zeros(f32,1,1))
-- args: tensor("A", bf16, "K"), tensor("E", f32, "M", "N", "S", "T"), out("C", f32, "L", "P")
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?,?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9 "P": index, %10: index, %11: index) {
    %12 = const 0.0 : f32
    %13 = splat %12 : f32(1,1)
    store %2, %7, %4, %13
    return
  }
}
]====]
