-- and/or device
local col=iota(1,8) local m = col < d.T and col <= 5 or not (col == 3) a.C:store({0,0}, where(m, zeros(f32,1,8), 1))
-- args: tensor("A", bf16, "K"), tensor("E", f32, "M", "N", "S", "T"), out("C", f32, "L", "P")
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?,?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9 "P": index, %10: index, %11: index) {
    %12 "col" = iota {axis = 1} : index(1,8)
    %13 = splat %7 : index(1,8)
    %14 = lt %12, %13 : bool(1,8)
    %15 = const 5 : index
    %16 = splat %15 : index(1,8)
    %17 = le %12, %16 : bool(1,8)
    %18 = and %14, %17 : bool(1,8)
    %19 = const 3 : index
    %20 = splat %19 : index(1,8)
    %21 = eq %12, %20 : bool(1,8)
    %22 = not %21 : bool(1,8)
    %23 "m" = or %18, %22 : bool(1,8)
    %24 = const 0.0 : f32
    %25 = splat %24 : f32(1,8)
    %26 = const 1.0 : f32
    %27 = splat %26 : f32(1,8)
    %28 = select %23, %25, %27 : f32(1,8)
    %29 = const 0 : index
    %30 = const 0 : index
    store %2, %29, %30, %28
    return
  }
}
]====]
