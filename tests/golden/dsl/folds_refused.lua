-- folds that are refused
local x, v, m = zeros(f32, 4, 8), zeros(f32, 4), zeros(bool, 4, 8)
local y = any(x)
y = rowall(x)
y = all(x, 0)
y = rowany(zeros(bool, 4))
y = any(m, 2)
y = any(m, 1, 2)
y = any(d.M > 0)
y = argmax(m, 1)
y = rowargmax(v)
y = argmin(x, "0")
y = argmax()
y = argmax(a.A)
y = cumsum(x)
y = cumsum(m, 1)
y = cumsum(zeros(s8, 4))
y = cumsum(zeros(e4m3, 4))
y = floor(zeros(s32, 4))
y = round(zeros(e4m3, 4))
y = trunc(m)
y = ceil(x, 1)
y = clamp(x, 0)
y = clamp(x, 5, 1)
y = clamp(x, 0, "1")
y = clamp(zeros(s32, 4), 0.5, 1)
y = clamp(x, zeros(f32, 3, 8), 1)
--[====[ expect
folds_refused.lua:3:11: error: any takes a mask (a comparison's result), got f32(4,8); compare it first, as x ~= 0 [K0501]
folds_refused.lua:4:5: error: rowall takes a mask (a comparison's result), got f32(4,8); compare it first, as x ~= 0 [K0501]
folds_refused.lua:5:5: error: all takes a mask (a comparison's result), got f32(4,8); compare it first, as x ~= 0 [K0501]
folds_refused.lua:6:5: error: rowany takes rank 2, got bool(4); use any(x, axis) [K0502]
folds_refused.lua:7:5: error: any: axis is number 2; axes count from 0 to 1 [K0503]
folds_refused.lua:8:5: error: any takes at most 2 arguments, got 3: any(x: value, axis?: integer): value [K0503]
folds_refused.lua:9:5: error: any takes a tile, got bool [K0503]
folds_refused.lua:10:5: error: argmax of bool(4,8): cast it to s32 first [K0501]
folds_refused.lua:11:5: error: rowargmax takes rank 2, got f32(4); use argmax(x, axis) [K0502]
folds_refused.lua:12:5: error: argmin: axis is a string; axes count from 0 to 1 [K0503]
folds_refused.lua:13:5: error: argmax takes (x [, axis]), got 0 values [K0503]
folds_refused.lua:14:5: error: argmax takes tiles and scalars, got tensor A bf16(K); read a tile of it: t:tile(offsets, sizes) [K0503]
folds_refused.lua:15:5: error: cumsum of rank 2 needs an axis: cumsum(x, 1) [K0503]
folds_refused.lua:16:5: error: cumsum of bool(4,8): cast it to s32 first [K0501]
folds_refused.lua:17:5: error: cumsum of s8(4): cast it to s32 first [K0501]
folds_refused.lua:18:5: error: cumsum of e4m3(4): cast it to f32 first [K0501]
folds_refused.lua:19:5: error: floor takes floats, got s32(4); cast it first [K0501]
folds_refused.lua:20:5: error: round takes f16, bf16, f32 and f64, got e4m3(4); cast it first [K0501]
folds_refused.lua:21:5: error: trunc takes floats, got bool(4,8); cast it first [K0501]
folds_refused.lua:22:5: error: ceil takes 1 argument, got 2: ceil(x: T): T [K0503]
folds_refused.lua:23:5: error: clamp takes (x, lo, hi), got 2 values [K0503]
folds_refused.lua:24:5: error: clamp: lo is 5, above hi, 1 [K0503]
folds_refused.lua:25:5: error: clamp takes tiles, scalars and numbers, got a string [K0503]
folds_refused.lua:26:5: error: clamp: the fraction 0.5 cannot become s32 [K0501]
folds_refused.lua:27:5: error: shapes (4,8) and (3,8) of clamp do not fit: dim 0 is 4 and 3 [K0502]
]====]
