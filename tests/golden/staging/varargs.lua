-- varargs
local function sum(...) local s = zeros(f32,4) for _,v in ipairs{...} do s = s + v end return s, select('#',...) end local v,n = sum(1,2,zeros(f32,4)) print(n) a.C:store({0},v)
--[====[ expect
print: 3
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 "v" = splat %11 : f32(4)
    %13 = const 0.0 : f32
    %14 "s" = splat %13 : f32(4)
    %15 = const 1.0 : f32
    %16 = splat %15 : f32(4)
    %17 "s" = add %14, %16 : f32(4)
    %18 = const 2.0 : f32
    %19 = splat %18 : f32(4)
    %20 "s" = add %17, %19 : f32(4)
    %21 "s" = add %20, %12 : f32(4)
    %22 = const 0 : index
    store %2, %22, %21
    return
  }
}
]====]
