-- a and b or c: device cond
local x = i > 0 and d.T or 5 local y = (i>1) and 3 or 4 a.C:store({x,y}, zeros(f32,1,1))
-- args: tensor("A", bf16, "K"), tensor("E", f32, "M", "N", "S", "T"), out("C", f32, "L", "P")
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?,?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9 "P": index, %10: index, %11: index) {
    %12 = const 0 : index
    %13 = gt %10, %12 : bool
    %14 = const 5 : index
    %15 "x" = select %13, %7, %14 : index
    %16 = const 1 : index
    %17 = gt %10, %16 : bool
    %18 = const 3 : index
    %19 = const 4 : index
    %20 "y" = select %17, %18, %19 : index
    %21 = const 0.0 : f32
    %22 = splat %21 : f32(1,1)
    store %2, %15, %20, %22
    return
  }
}
]====]
