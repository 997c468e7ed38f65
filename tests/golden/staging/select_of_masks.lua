-- mask and true, mask or false, not
local m, n = i > 0, j > 1
local p = (m and true) or (n and false)
local q = not (m or n) and not p
a.C:store({0}, where(q, f32(1), f32(0)))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 "m" = gt %9, %11 : bool
    %13 = const 1 : index
    %14 "n" = gt %10, %13 : bool
    %15 = or %12, %14 : bool
    %16 = not %15 : bool
    %17 = not %12 : bool
    %18 "q" = and %16, %17 : bool
    %19 = const 1.0 : f32
    %20 = const 0.0 : f32
    %21 = select %18, %19, %20 : f32
    %22 = const 0 : index
    %23 = splat %21 : f32(1)
    store %2, %22, %23
    return
  }
}
]====]
