-- products: K-contiguous operands, accumulation in place, precision
local x, w = a.X:tile({0, 0}, {16, 32}), a.W:tile({0, 0}, {8, 32})
local acc = dot(x, w:T())
acc = acc + dot(x, w:T())
acc = dot(x, w:T()) + acc
acc = dot(x, w:T(), acc)
local p = dot(x, w:T())
local q = p + acc
local twice = p * q
local f = dot(cast(x, f32), cast(w, f32):T(), {prec = "tf32"}) + dot(cast(x, f32), cast(w, f32):T(), {prec = "ieee"})
local n = dot(zeros(s8, 16, 32), zeros(s8, 32, 8)) + 1
a.Y:store({0, 0}, twice + f)
-- args: tensor("X", bf16, "M", "K"), tensor("W", bf16, "N", "K"), out("Y", f32, "M", "N")
--[====[ expect
  body(%0 "X": view bf16(?,?), %1 "W": view bf16(?,?), %2 "Y": view f32(?,?), %3 "M": index, %4 "K": index, %5 "N": index, %6: index, %7: index) {
    %8 = const 0 : index
    %9 = const 0 : index
    %10 "x" = load %0, %8, %9 : bf16(16,32)
    %11 = const 0 : index
    %12 = const 0 : index
    %13 "w" = load %1, %11, %12 : bf16(8,32)
    %14 = transpose %13 {perm = [1,0]} : bf16(32,8)
    %15 = const 0.0 : f32
    %16 = splat %15 : f32(16,8)
    %17 "acc" = dot %10, %14, %16 : f32(16,8)
    %18 = transpose %13 {perm = [1,0]} : bf16(32,8)
    %19 = const 0.0 : f32
    %20 = splat %19 : f32(16,8)
    %21 "acc" = dot %10, %18, %17 : f32(16,8)
    %22 = transpose %13 {perm = [1,0]} : bf16(32,8)
    %23 = const 0.0 : f32
    %24 = splat %23 : f32(16,8)
    %25 "acc" = dot %10, %22, %21 : f32(16,8)
    %26 = transpose %13 {perm = [1,0]} : bf16(32,8)
    %27 "acc" = dot %10, %26, %25 : f32(16,8)
    %28 = transpose %13 {perm = [1,0]} : bf16(32,8)
    %29 = const 0.0 : f32
    %30 = splat %29 : f32(16,8)
    %31 "p" = dot %10, %28, %30 : f32(16,8)
    %32 "q" = add %31, %27 : f32(16,8)
    %33 "twice" = mul %31, %32 : f32(16,8)
    %34 = cast %10 : f32(16,32)
    %35 = cast %13 : f32(8,32)
    %36 = transpose %35 {perm = [1,0]} : f32(32,8)
    %37 = const 0.0 : f32
    %38 = splat %37 : f32(16,8)
    %39 = dot %34, %36, %38 {prec = tf32} : f32(16,8)
    %40 = cast %10 : f32(16,32)
    %41 = cast %13 : f32(8,32)
    %42 = transpose %41 {perm = [1,0]} : f32(32,8)
    %43 = const 0.0 : f32
    %44 = splat %43 : f32(16,8)
    %45 "f" = dot %40, %42, %39 : f32(16,8)
    %46 = const 0 : s8
    %47 = splat %46 : s8(16,32)
    %48 = const 0 : s8
    %49 = splat %48 : s8(32,8)
    %50 = const 0 : s32
    %51 = splat %50 : s32(16,8)
    %52 = dot %47, %49, %51 : s32(16,8)
    %53 = const 1 : s32
    %54 = splat %53 : s32(16,8)
    %55 "n" = add %52, %54 : s32(16,8)
    %56 = add %33, %45 : f32(16,8)
    %57 = const 0 : index
    %58 = const 0 : index
    store %2, %57, %58, %56
    return
  }
}
]====]
