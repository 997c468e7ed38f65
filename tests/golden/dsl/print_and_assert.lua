-- print and assert on device values are ops; plain print acts while tracing
local x = zeros(f32, 2)
print("plain", 1)
print("x is", x)
print(i, "of", d.M)
print(i, j)
assert(i < d.M)
assert(x >= 0, "x is not negative")
for k in range(0, 2) do print("k", k) end
--[====[ expect
print: plain	1
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "x" = splat %11 : f32(2)
    print %12 {message = "x is"}
    print %9, %4 {message = "{} of {}"}
    print %9, %10
    %13 = lt %9, %4 : bool
    assert %13
    %14 = const 0.0 : f32
    %15 = splat %14 : f32(2)
    %16 = ge %12, %15 : bool(2)
    assert %16 {message = "x is not negative"}
    %17 = const 0 : index
    %18 = const 2 : index
    %19 = const 1 : index
    for %20 "k": index = %17, %18, %19 {
      print %20 {message = "k"}
      yield
    }
    return
  }
}
]====]
