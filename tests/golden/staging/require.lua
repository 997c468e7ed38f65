-- require
local h = require"twice" a.C:store({0}, h.twice(zeros(f32,4)))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 = splat %11 : f32(4)
    %13 = const 2.0 : f32
    %14 = splat %13 : f32(4)
    %15 = mul %12, %14 : f32(4)
    %16 = const 0 : index
    store %2, %16, %15
    return
  }
}
]====]
