-- reductions and products that are refused
local x, v = zeros(f32, 4, 8), zeros(f32, 4)
local y = rowsum(v)
y = rowsum(f32(1))
y = rowsum(x, 1)
y = sum(x, 2)
y = sum(x, -1)
y = sum(x > 0)
y = sum(zeros(s8, 4))
y = amax(x > 0)
y = sum(a.A)
y = dot(x, zeros(f32, 4, 8))
y = dot(x, zeros(f32, 16, 4))
y = dot(x, zeros(bf16, 8, 4))
y = dot(v, v)
y = dot(x)
y = dot(zeros(s32, 4, 8), zeros(s32, 8, 4))
y = dot(zeros(s8, 4, 8), zeros(u8, 8, 4))
y = dot(x, zeros(f32, 8, 4), zeros(bf16, 4, 4))
y = dot(x, zeros(f32, 8, 4), {prec = "half"})
y = dot(zeros(bf16, 4, 8), zeros(bf16, 8, 4), {prec = "tf32"})
--[====[ expect
reductions_refused.lua:3:11: error: rowsum takes rank 2, got f32(4); use sum, amax, amin(x, axis) [K0502]
reductions_refused.lua:4:5: error: rowsum takes rank 2, got f32; use sum, amax, amin(x, axis) [K0502]
reductions_refused.lua:5:5: error: rowsum takes 1 argument, got 2: rowsum(x: value): value [K0503]
reductions_refused.lua:6:5: error: sum: axis is number 2; axes count from 0 to 1 [K0503]
reductions_refused.lua:7:5: error: sum: axis is number -1; axes count from 0 to 1 [K0503]
reductions_refused.lua:8:5: error: sum of bool(4,8): cast it to s32 first [K0501]
reductions_refused.lua:9:5: error: sum of s8(4): cast it to s32 first [K0501]
reductions_refused.lua:10:5: error: amax of bool(4,8): cast it to s32 first [K0501]
reductions_refused.lua:11:5: error: sum takes tiles and scalars, got tensor A bf16(K); read a tile of it: t:tile(offsets, sizes) [K0503]
reductions_refused.lua:12:5: error: dot of f32(4,8) and f32(4,8): K is 8 in the first (its dim 1) and 4 in the second (its dim 0); transpose the second with :T() [K0502]
reductions_refused.lua:13:5: error: dot of f32(4,8) and f32(16,4): K is 8 in the first (its dim 1) and 16 in the second (its dim 0) [K0502]
reductions_refused.lua:14:5: error: dot of f32(4,8) and bf16(8,4): two dtypes never mix; cast one of them [K0501]
reductions_refused.lua:15:5: error: dot takes tiles (M,K) and (K,N), got f32(4) and f32(4) [K0502]
reductions_refused.lua:16:5: error: dot takes two tiles and perhaps an accumulator, got 1 value [K0503]
reductions_refused.lua:17:5: error: dot of s32(4,8): it takes f64, f32, f16, bf16, e4m3, e5m2, s8 or u8 [K0501]
reductions_refused.lua:18:5: error: dot of s8(4,8) and u8(8,4): two dtypes never mix; cast one of them [K0501]
reductions_refused.lua:19:5: error: dot of f32(4,8) and f32(8,4) accumulates into f32(4,4), got bf16(4,4) [K0501]
reductions_refused.lua:20:5: error: the option of dot is {prec = W}, W one of ieee, tf32, tf32x3, promoted or fast [K0503]
reductions_refused.lua:21:5: error: dot: prec = "tf32" is for f32 operands, not bf16 [K0503]
]====]
