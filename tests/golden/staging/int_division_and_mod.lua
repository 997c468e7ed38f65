-- int division and mod
local x,y,z = i // 2, i % 3, 7 // 2 print(z, 7 % -3, -7 // 2, 7.0//2) a.C:store({x,y}, zeros(f32,1,1))
-- args: tensor("A", bf16, "K"), tensor("E", f32, "M", "N", "S", "T"), out("C", f32, "L", "P")
--[====[ expect
print: 3	-2	-4	3.0
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?,?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9 "P": index, %10: index, %11: index) {
    %12 = const 2 : index
    %13 "x" = floordiv %10, %12 : index
    %14 = const 3 : index
    %15 "y" = mod %10, %14 : index
    %16 = const 0.0 : f32
    %17 = splat %16 : f32(1,1)
    store %2, %13, %15, %17
    return
  }
}
]====]
