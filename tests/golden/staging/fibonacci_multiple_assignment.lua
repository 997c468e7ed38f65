-- fibonacci multiple assignment
local x,y = 0,1 for k in range(0,d.K) do x, y = y, x+y end a.C:store({x}, zeros(f32,1))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = const 1 : index
    %13 = const 0 : index
    %14 = const 1 : index
    %15 "x", %16 "y" = for %17 "k": index = %11, %3, %12 carry(%18 "x": index = %13, %19 "y": index = %14) : index, index {
      %20 "y" = add %18, %19 : index
      yield %19, %20
    }
    %21 = const 0.0 : f32
    %22 = splat %21 : f32(1)
    store %2, %15, %22
    return
  }
}
]====]
