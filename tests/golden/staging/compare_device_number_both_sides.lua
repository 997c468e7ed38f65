-- compare device number both sides
local m = 3 < i and i <= 7 and 0 ~= i a.C:store({0}, where(m, zeros(f32,1), 1))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 3 : index
    %12 = lt %11, %9 : bool
    %13 = const 7 : index
    %14 = le %9, %13 : bool
    %15 = and %12, %14 : bool
    %16 = const 0 : index
    %17 = ne %16, %9 : bool
    %18 "m" = and %15, %17 : bool
    %19 = const 0.0 : f32
    %20 = splat %19 : f32(1)
    %21 = const 1.0 : f32
    %22 = splat %18 : bool(1)
    %23 = splat %21 : f32(1)
    %24 = select %22, %20, %23 : f32(1)
    %25 = const 0 : index
    store %2, %25, %24
    return
  }
}
]====]
