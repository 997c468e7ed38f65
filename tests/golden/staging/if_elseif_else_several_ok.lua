-- if/elseif/else several ok
local x,y,z = 0, zeros(f32,4,1), 5
  if i == 0 then x, y = 1, y + 1 elseif i == 1 then y = y * 2 z = 7 else x = 3 end
  a.C:store({x, z}, y)
-- args: tensor("A", bf16, "K"), tensor("E", f32, "M", "N", "S", "T"), out("C", f32, "L", "P")
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?,?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9 "P": index, %10: index, %11: index) {
    %12 = const 0.0 : f32
    %13 "y" = splat %12 : f32(4,1)
    %14 = const 0 : index
    %15 = eq %10, %14 : bool
    %16 "x", %17 "y", %18 "z" = if %15 : index, f32(4,1), index {
      %19 = const 1.0 : f32
      %20 = splat %19 : f32(4,1)
      %21 "y" = add %13, %20 : f32(4,1)
      %22 = const 1 : index
      %23 = const 5 : index
      yield %22, %21, %23
    } else {
      %24 = const 1 : index
      %25 = eq %10, %24 : bool
      %26 "x", %27 "y", %28 "z" = if %25 : index, f32(4,1), index {
        %29 = const 2.0 : f32
        %30 = splat %29 : f32(4,1)
        %31 "y" = mul %13, %30 : f32(4,1)
        %32 = const 0 : index
        %33 = const 7 : index
        yield %32, %31, %33
      } else {
        %34 = const 3 : index
        %35 = const 5 : index
        yield %34, %13, %35
      }
      yield %26, %27, %28
    }
    store %2, %16, %18, %17
    return
  }
}
]====]
