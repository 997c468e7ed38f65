-- library: names of tables do not count passes
local t = {} for k in range(0, d.K, 32) do print(tostring(t), tostring({})) a.C:store({k}, zeros(f32, 1)) end print(tostring({}))
--[====[ expect
print: table: 0x000000000001	table: 0x000000000002
print: table: 0x000000000003
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = const 32 : index
    for %13 "k": index = %11, %3, %12 {
      %14 = const 0.0 : f32
      %15 = splat %14 : f32(1)
      store %2, %13, %15
      yield
    }
    return
  }
}
]====]
