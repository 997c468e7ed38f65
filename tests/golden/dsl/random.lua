-- random numbers
local at = i * 64 + iota(1, 8)
local u = random(a.seed, at) + random(7, at, 3)
local keep = random_bits(a.seed, cast(at, s32)) >= 0
local z = where(keep, random_normal(a.seed, at), u) + random(i, j) + random(0, 41)
a.Y:store({0, 0}, z)
-- args: scalar("seed", s32), out("Y", f32, "M", "N")
--[====[ expect
  body(%0 "seed": s32, %1 "Y": view f32(?,?), %2 "M": index, %3 "N": index, %4: index, %5: index) {
    %6 = const 64 : index
    %7 = mul %4, %6 : index
    %8 = iota {axis = 1} : index(1,8)
    %9 = splat %7 : index(1,8)
    %10 "at" = add %9, %8 : index(1,8)
    %11 = cast %0 : s64
    %12 = random %11, %10 {word = 0} : s32(1,8)
    %13 = const 8 : s32
    %14 = splat %13 : s32(1,8)
    %15 = shr %12, %14 : s32(1,8)
    %16 = const 16777215 : s32
    %17 = splat %16 : s32(1,8)
    %18 = and %15, %17 : s32(1,8)
    %19 = cast %18 : f32(1,8)
    %20 = const 5.9604644775390625e-08 : f32
    %21 = splat %20 : f32(1,8)
    %22 = mul %19, %21 : f32(1,8)
    %23 = const 7 : s64
    %24 = random %23, %10 {word = 3} : s32(1,8)
    %25 = const 8 : s32
    %26 = splat %25 : s32(1,8)
    %27 = shr %24, %26 : s32(1,8)
    %28 = const 16777215 : s32
    %29 = splat %28 : s32(1,8)
    %30 = and %27, %29 : s32(1,8)
    %31 = cast %30 : f32(1,8)
    %32 = const 5.9604644775390625e-08 : f32
    %33 = splat %32 : f32(1,8)
    %34 = mul %31, %33 : f32(1,8)
    %35 "u" = add %22, %34 : f32(1,8)
    %36 = cast %10 : s32(1,8)
    %37 = cast %0 : s64
    %38 = cast %36 : s64(1,8)
    %39 = random %37, %38 {word = 0} : s32(1,8)
    %40 = const 0 : s32
    %41 = splat %40 : s32(1,8)
    %42 "keep" = ge %39, %41 : bool(1,8)
    %43 = cast %0 : s64
    %44 = random %43, %10 {word = 0} : s32(1,8)
    %45 = cast %0 : s64
    %46 = random %45, %10 {word = 1} : s32(1,8)
    %47 = const 8 : s32
    %48 = splat %47 : s32(1,8)
    %49 = shr %44, %48 : s32(1,8)
    %50 = const 16777215 : s32
    %51 = splat %50 : s32(1,8)
    %52 = and %49, %51 : s32(1,8)
    %53 = const 1 : s32
    %54 = splat %53 : s32(1,8)
    %55 = add %52, %54 : s32(1,8)
    %56 = cast %55 : f32(1,8)
    %57 = const 5.9604644775390625e-08 : f32
    %58 = splat %57 : f32(1,8)
    %59 = mul %56, %58 : f32(1,8)
    %60 = log %59 : f32(1,8)
    %61 = const -2.0 : f32
    %62 = splat %61 : f32(1,8)
    %63 = mul %60, %62 : f32(1,8)
    %64 = sqrt %63 : f32(1,8)
    %65 = const 8 : s32
    %66 = splat %65 : s32(1,8)
    %67 = shr %46, %66 : s32(1,8)
    %68 = const 16777215 : s32
    %69 = splat %68 : s32(1,8)
    %70 = and %67, %69 : s32(1,8)
    %71 = cast %70 : f32(1,8)
    %72 = const 5.9604644775390625e-08 : f32
    %73 = splat %72 : f32(1,8)
    %74 = mul %71, %73 : f32(1,8)
    %75 = const 6.2831854820251465 : f32
    %76 = splat %75 : f32(1,8)
    %77 = mul %74, %76 : f32(1,8)
    %78 = cos %77 : f32(1,8)
    %79 = mul %64, %78 : f32(1,8)
    %80 = select %42, %79, %35 : f32(1,8)
    %81 = cast %4 : s64
    %82 = random %81, %5 {word = 0} : s32
    %83 = const 8 : s32
    %84 = shr %82, %83 : s32
    %85 = const 16777215 : s32
    %86 = and %84, %85 : s32
    %87 = cast %86 : f32
    %88 = const 5.9604644775390625e-08 : f32
    %89 = mul %87, %88 : f32
    %90 = splat %89 : f32(1,8)
    %91 = add %80, %90 : f32(1,8)
    %92 = const 0 : s64
    %93 = const 41 : s64
    %94 = random %92, %93 {word = 0} : s32
    %95 = const 8 : s32
    %96 = shr %94, %95 : s32
    %97 = const 16777215 : s32
    %98 = and %96, %97 : s32
    %99 = cast %98 : f32
    %100 = const 5.9604644775390625e-08 : f32
    %101 = mul %99, %100 : f32
    %102 = splat %101 : f32(1,8)
    %103 "z" = add %91, %102 : f32(1,8)
    %104 = const 0 : index
    %105 = const 0 : index
    store %1, %104, %105, %103
    return
  }
}
]====]
