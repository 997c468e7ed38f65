-- arguments: scalars, optional ones left out, fields that do not exist
local x = a.X:tile({a.first}, {4}) * a.scale
if a.bias then x = x + a.bias:tile({0}, {4}) end
if a.shift then x = x + a.shift end
for k in range(0, a.count, 2) do x = x + cast(k, f32) end
a.C:store({0}, a.flag and x or x * 2)
a.C:store({0}, where(a.flag, x, x * 2))
print(a.bias, a.shift, type(a.X), a.X.dtype, d.M ~= nil)
-- args: tensor("X", f32, "M"), scalar("scale", f32), scalar("first", s64), scalar("count", s32), scalar("flag", bool), optional(tensor("bias", f32, "M")), optional(scalar("shift", f32)), out("C", f32, "M")
--[====[ expect
print: nil	nil	tensor	f32	true
  body(%0 "X": view f32(?), %1 "scale": f32, %2 "first": s64, %3 "count": s32, %4 "flag": bool, %5 "C": view f32(?), %6 "M": index, %7: index, %8: index) {
    %9 = cast %2 : index
    %10 = load %0, %9 : f32(4)
    %11 = splat %1 : f32(4)
    %12 "x" = mul %10, %11 : f32(4)
    %13 = cast %3 : index
    %14 = const 0 : index
    %15 = const 2 : index
    %16 "x" = for %17 "k": index = %14, %13, %15 carry(%18 "x": f32(4) = %12) : f32(4) {
      %19 = cast %17 : f32
      %20 = splat %19 : f32(4)
      %21 "x" = add %18, %20 : f32(4)
      yield %21
    }
    %22 = const 2.0 : f32
    %23 = splat %22 : f32(4)
    %24 = mul %16, %23 : f32(4)
    %25 = splat %4 : bool(4)
    %26 = select %25, %16, %24 : f32(4)
    %27 = const 0 : index
    store %5, %27, %26
    %28 = const 2.0 : f32
    %29 = splat %28 : f32(4)
    %30 = mul %16, %29 : f32(4)
    %31 = splat %4 : bool(4)
    %32 = select %31, %16, %30 : f32(4)
    %33 = const 0 : index
    store %5, %33, %32
    return
  }
}
]====]
