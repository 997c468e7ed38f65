-- multi assign with calls
local function two() return zeros(f32,4), zeros(f32,4)+1 end local p,q,r = two() print(tostring(r)) local t={} t.a, t.b, p = two() print(type(t.a),type(t.b),tostring(p)) p, q = (two()) print(tostring(q))
--[====[ expect
print: nil
print: tile	tile	nil
print: nil
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "p" = splat %11 : f32(4)
    %13 = const 0.0 : f32
    %14 = splat %13 : f32(4)
    %15 = const 1.0 : f32
    %16 = splat %15 : f32(4)
    %17 "q" = add %14, %16 : f32(4)
    %18 = const 0.0 : f32
    %19 = splat %18 : f32(4)
    %20 = const 0.0 : f32
    %21 = splat %20 : f32(4)
    %22 = const 1.0 : f32
    %23 = splat %22 : f32(4)
    %24 = add %21, %23 : f32(4)
    %25 = const 0.0 : f32
    %26 "p" = splat %25 : f32(4)
    %27 = const 0.0 : f32
    %28 = splat %27 : f32(4)
    %29 = const 1.0 : f32
    %30 = splat %29 : f32(4)
    %31 = add %28, %30 : f32(4)
    return
  }
}
]====]
