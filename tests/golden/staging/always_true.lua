-- a scalar that is no mask is always true: a warning
if d.N then
  a.C:store({0}, f32(1))
end
local x = a.bias and 1 or 2
--[====[ expect
always_true.lua:2:6: warning: the condition is index, which is always true; compare with 0 or nil [K0306]
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 1.0 : f32
    %12 = const 0 : index
    %13 = splat %11 : f32(1)
    store %2, %12, %13
    return
  }
}
]====]
