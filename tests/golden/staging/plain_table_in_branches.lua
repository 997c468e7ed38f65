-- plain values that are equal on both sides stay plain; booleans merge to a mask
local n, b = 1, false
if i > 0 then
  n, b = 2, true
else
  n = 2
end
a.C:store({n}, where(b, zeros(f32, n), 1))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = gt %9, %11 : bool
    %13 "b" = if %12 : bool {
      %14 = const true : bool
      yield %14
    } else {
      %15 = const false : bool
      yield %15
    }
    %16 = const 0.0 : f32
    %17 = splat %16 : f32(2)
    %18 = const 1.0 : f32
    %19 = splat %13 : bool(2)
    %20 = splat %18 : f32(2)
    %21 = select %19, %17, %20 : f32(2)
    %22 = const 2 : index
    store %2, %22, %21
    return
  }
}
]====]
