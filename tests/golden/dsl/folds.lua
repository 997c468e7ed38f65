-- any, all, positions, running sums, whole numbers
local x = a.X:tile({0, 0}, {4, 8}, {pad = 0})
local m = x > 0
local r = rowany(m) and rowall(m) or any(m, 1) and all(m, 1)
local q = colany(m) and colall(m) or any(m, 0) and all(m, 0)
local s = any(m) and all(m)
local k = rowargmax(x) + rowargmin(x) + argmax(x, 1) + argmin(x, 1)
k = k + cast(colargmax(x) + colargmin(x), index) + argmax(x) + argmin(x)
local c = cumsum(x, 0) + cumsum(x, 1) + cast(cumsum(cast(x, bf16), 1), f32)
c = c + floor(x) + ceil(x) + round(x) + trunc(x) + clamp(x, -1, 1) + clamp(x, 0, rowmax(x))
a.Y:store({0, 0}, where(r and q and s, c, cast(k, f32)))
a.C:store({0}, cumsum(zeros(f32, 8)) + cast(argmax(zeros(f32, 8)), f32))
print(floor(2.5), ceil(2.5), round(2.5), round(3.5), trunc(-2.5), clamp(7, 1, 5), clamp(0.5, 1, 5))
-- args: tensor("X", f32, "M", "N"), out("Y", f32, "M", "N"), out("C", f32, "L")
--[====[ expect
print: 2.0	3.0	2.0	4.0	-2.0	5	1
  body(%0 "X": view f32(?,?), %1 "Y": view f32(?,?), %2 "C": view f32(?), %3 "M": index, %4 "N": index, %5 "L": index, %6: index, %7: index) {
    %8 = const 0 : index
    %9 = const 0 : index
    %10 "x" = load %0, %8, %9 : f32(4,8)
    %11 = const 0.0 : f32
    %12 = splat %11 : f32(4,8)
    %13 "m" = gt %10, %12 : bool(4,8)
    %14 = reduce_any %13 {axis = 1} : bool(4,1)
    %15 = reduce_all %13 {axis = 1} : bool(4,1)
    %16 = and %14, %15 : bool(4,1)
    %17 = reduce_any %13 {axis = 1} : bool(4,1)
    %18 = reduce_all %13 {axis = 1} : bool(4,1)
    %19 = and %17, %18 : bool(4,1)
    %20 "r" = or %16, %19 : bool(4,1)
    %21 = reduce_any %13 {axis = 0} : bool(1,8)
    %22 = reduce_all %13 {axis = 0} : bool(1,8)
    %23 = and %21, %22 : bool(1,8)
    %24 = reduce_any %13 {axis = 0} : bool(1,8)
    %25 = reduce_all %13 {axis = 0} : bool(1,8)
    %26 = and %24, %25 : bool(1,8)
    %27 "q" = or %23, %26 : bool(1,8)
    %28 = reduce_any %13 {axis = 1} : bool(4,1)
    %29 = reduce_any %28 {axis = 0} : bool(1,1)
    %30 = item %29 : bool
    %31 = reduce_all %13 {axis = 1} : bool(4,1)
    %32 = reduce_all %31 {axis = 0} : bool(1,1)
    %33 = item %32 : bool
    %34 "s" = and %30, %33 : bool
    %35 = argmax %10 {axis = 1} : index(4,1)
    %36 = argmin %10 {axis = 1} : index(4,1)
    %37 = add %35, %36 : index(4,1)
    %38 = argmax %10 {axis = 1} : index(4,1)
    %39 = add %37, %38 : index(4,1)
    %40 = argmin %10 {axis = 1} : index(4,1)
    %41 "k" = add %39, %40 : index(4,1)
    %42 = argmax %10 {axis = 0} : index(1,8)
    %43 = argmin %10 {axis = 0} : index(1,8)
    %44 = add %42, %43 : index(1,8)
    %45 = broadcast %41 : index(4,8)
    %46 = broadcast %44 : index(4,8)
    %47 = add %45, %46 : index(4,8)
    %48 = reshape %10 : f32(32)
    %49 = argmax %48 {axis = 0} : index(1)
    %50 = item %49 : index
    %51 = splat %50 : index(4,8)
    %52 = add %47, %51 : index(4,8)
    %53 = reshape %10 : f32(32)
    %54 = argmin %53 {axis = 0} : index(1)
    %55 = item %54 : index
    %56 = splat %55 : index(4,8)
    %57 "k" = add %52, %56 : index(4,8)
    %58 = scan_sum %10 {axis = 0} : f32(4,8)
    %59 = scan_sum %10 {axis = 1} : f32(4,8)
    %60 = add %58, %59 : f32(4,8)
    %61 = cast %10 : bf16(4,8)
    %62 = cast %61 : f32(4,8)
    %63 = scan_sum %62 {axis = 1} : f32(4,8)
    %64 = cast %63 : bf16(4,8)
    %65 = cast %64 : f32(4,8)
    %66 "c" = add %60, %65 : f32(4,8)
    %67 = floor %10 : f32(4,8)
    %68 = add %66, %67 : f32(4,8)
    %69 = ceil %10 : f32(4,8)
    %70 = add %68, %69 : f32(4,8)
    %71 = round %10 : f32(4,8)
    %72 = add %70, %71 : f32(4,8)
    %73 = trunc %10 : f32(4,8)
    %74 = add %72, %73 : f32(4,8)
    %75 = const -1.0 : f32
    %76 = splat %75 : f32(4,8)
    %77 = max %10, %76 : f32(4,8)
    %78 = const 1.0 : f32
    %79 = splat %78 : f32(4,8)
    %80 = min %77, %79 : f32(4,8)
    %81 = add %74, %80 : f32(4,8)
    %82 = reduce_max %10 {axis = 1} : f32(4,1)
    %83 = const 0.0 : f32
    %84 = splat %83 : f32(4,8)
    %85 = max %10, %84 : f32(4,8)
    %86 = broadcast %82 : f32(4,8)
    %87 = min %85, %86 : f32(4,8)
    %88 "c" = add %81, %87 : f32(4,8)
    %89 = broadcast %20 : bool(4,8)
    %90 = broadcast %27 : bool(4,8)
    %91 = and %89, %90 : bool(4,8)
    %92 = splat %34 : bool(4,8)
    %93 = and %91, %92 : bool(4,8)
    %94 = cast %57 : f32(4,8)
    %95 = select %93, %88, %94 : f32(4,8)
    %96 = const 0 : index
    %97 = const 0 : index
    store %1, %96, %97, %95
    %98 = const 0.0 : f32
    %99 = splat %98 : f32(8)
    %100 = scan_sum %99 {axis = 0} : f32(8)
    %101 = const 0.0 : f32
    %102 = splat %101 : f32(8)
    %103 = argmax %102 {axis = 0} : index(1)
    %104 = item %103 : index
    %105 = cast %104 : f32
    %106 = splat %105 : f32(8)
    %107 = add %100, %106 : f32(8)
    %108 = const 0 : index
    store %2, %108, %107
    return
  }
}
]====]
