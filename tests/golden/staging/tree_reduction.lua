-- tree reduction
local function tree(t,lo,hi) if lo==hi then return t[lo] end local m=(lo+hi)//2 return tree(t,lo,m)+tree(t,m+1,hi) end local t={} for r=1,8 do t[r]=full(f32,r,4) end a.C:store({0},tree(t,1,8))
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 1.0 : f32
    %12 = splat %11 : f32(4)
    %13 = const 2.0 : f32
    %14 = splat %13 : f32(4)
    %15 = const 3.0 : f32
    %16 = splat %15 : f32(4)
    %17 = const 4.0 : f32
    %18 = splat %17 : f32(4)
    %19 = const 5.0 : f32
    %20 = splat %19 : f32(4)
    %21 = const 6.0 : f32
    %22 = splat %21 : f32(4)
    %23 = const 7.0 : f32
    %24 = splat %23 : f32(4)
    %25 = const 8.0 : f32
    %26 = splat %25 : f32(4)
    %27 = add %12, %14 : f32(4)
    %28 = add %16, %18 : f32(4)
    %29 = add %27, %28 : f32(4)
    %30 = add %20, %22 : f32(4)
    %31 = add %24, %26 : f32(4)
    %32 = add %30, %31 : f32(4)
    %33 = add %29, %32 : f32(4)
    %34 = const 0 : index
    store %2, %34, %33
    return
  }
}
]====]
