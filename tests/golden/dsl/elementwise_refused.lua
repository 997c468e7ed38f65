-- elementwise ops that are refused; each line is one mistake
local f, h, b8, n8 = zeros(f32, 4, 4), zeros(bf16, 4, 4), zeros(e4m3, 4, 4), zeros(s8, 4, 4)
local m = f > 0
local x = f + h
x = f + zeros(f32, 4)
x = f + zeros(f32, 4, 3)
x = b8 + b8
x = m + 1
x = -m
x = m < m
x = f // 2
x = f % 2
x = f & 1
x = f ^ 2
x = f << 1
x = n8 + 300
x = n8 + 0.5
x = n8 / 2
x = zeros(f16, 4) * 70000
x = zeros(e4m3, 4) < 449
x = f * i
x = f + d.M
x = f + true
x = exp(n8)
x = exp(b8)
x = gelu(i)
x = sqrt(m)
x = abs(m)
x = exp(f, f)
x = exp("a")
x = exp(a.A)
x = a.A + 1
x = max()
x = max(f, h)
x = min(m, m)
x = cast(f, 32)
x = cast(a.A, f32)
x = f32(f, 1)
x = bf16(a.A)
x = where(f, 1, 2)
x = where(m, 1, 2.5)
x = where(m, f, h)
x = where(m, f)
x = where(zeros(f32, 3, 4) > 0, f, 0)
x = cdiv(f, 2)
x = f.shapes
x = f:row()
x = f:transpose()
x = zeros(f32, 2, 2, 2):T()
x = zeros(f32, 6):reshape(4)
x = f[1]
assert(f, "never")
assert(i < 3, i)
--[====[ expect
elementwise_refused.lua:4:13: error: `+` of f32(4,4) and bf16(4,4): two dtypes never mix; cast one of them [K0501]
elementwise_refused.lua:5:7: error: shapes (4,4) and (4) of `+` have different ranks; make them equal with :row(), :col() or :reshape(...) [K0502]
elementwise_refused.lua:6:7: error: shapes (4,4) and (4,3) of `+` do not fit: dim 1 is 4 and 3 [K0502]
elementwise_refused.lua:7:8: error: `+` takes f16, bf16, f32 and f64, got e4m3(4,4); cast it first [K0501]
elementwise_refused.lua:8:7: error: `+` takes numbers, got bool(4,4); use where(mask, x, y), or cast it first [K0501]
elementwise_refused.lua:9:5: error: `-` takes numbers, got bool(4,4); use where(mask, x, y), or cast it first [K0501]
elementwise_refused.lua:10:7: error: `<` takes numbers, got bool(4,4); masks combine with and, or, not, == and ~= [K0501]
elementwise_refused.lua:11:7: error: `//` takes integers, got f32(4,4); use '/' [K0501]
elementwise_refused.lua:12:7: error: `%` takes integers, got f32(4,4) [K0501]
elementwise_refused.lua:13:7: error: `&` takes masks and integers, got f32(4,4) [K0501]
elementwise_refused.lua:14:7: error: `^` on device values; multiply, or use exp2(y * log2(x)) or sqrt(x) [K0503]
elementwise_refused.lua:15:7: error: `<<` takes integers, got f32(4,4) [K0501]
elementwise_refused.lua:16:8: error: number 300 does not fit s8 (-128 to 127) [K0501]
elementwise_refused.lua:17:8: error: the fraction 0.5 cannot become s8 [K0501]
elementwise_refused.lua:18:8: error: '/' on device integers; use '//' [K0501]
elementwise_refused.lua:19:19: error: number 70000 does not fit f16 (largest 65504) [K0501]
elementwise_refused.lua:20:20: error: number 449 does not fit e4m3 (largest 448) [K0501]
elementwise_refused.lua:21:7: error: `*` of f32(4,4) and index: two dtypes never mix; cast one of them [K0501]
elementwise_refused.lua:22:7: error: `+` of f32(4,4) and index: two dtypes never mix; cast one of them [K0501]
elementwise_refused.lua:23:7: error: cannot apply '+' to f32(4,4) and true [K0305]
elementwise_refused.lua:24:5: error: exp takes floats, got s8(4,4); cast it first [K0501]
elementwise_refused.lua:25:5: error: exp takes f16, bf16, f32 and f64, got e4m3(4,4); cast it first [K0501]
elementwise_refused.lua:26:5: error: gelu takes floats, got index; cast it first [K0501]
elementwise_refused.lua:27:5: error: sqrt takes floats, got bool(4,4); cast it first [K0501]
elementwise_refused.lua:28:5: error: abs takes numbers, got bool(4,4); use where(mask, x, y), or cast it first [K0501]
elementwise_refused.lua:29:5: error: exp takes 1 argument, got 2: exp(x: T): T [K0503]
elementwise_refused.lua:30:5: error: exp takes tiles, scalars and numbers, got a string [K0503]
elementwise_refused.lua:31:5: error: exp takes tiles and scalars, got tensor A bf16(K); read a tile of it: t:tile(offsets, sizes) [K0503]
elementwise_refused.lua:32:9: error: `+` takes tiles and scalars, got tensor A bf16(K); read a tile of it: t:tile(offsets, sizes) [K0503]
elementwise_refused.lua:33:5: error: max takes at least one value [K0503]
elementwise_refused.lua:34:5: error: max of f32(4,4) and bf16(4,4): two dtypes never mix; cast one of them [K0501]
elementwise_refused.lua:35:5: error: min takes numbers, got bool(4,4); use where(mask, x, y), or cast it first [K0501]
elementwise_refused.lua:36:5: error: cast needs a dtype (f32, bf16, ...), got number 32 [K0501]
elementwise_refused.lua:37:5: error: cast takes tiles and scalars, got tensor A bf16(K); read a tile of it: t:tile(offsets, sizes) [K0503]
elementwise_refused.lua:38:5: error: f32(x) takes one value, got 2 [K0503]
elementwise_refused.lua:39:5: error: bf16 takes tiles and scalars, got tensor A bf16(K); read a tile of it: t:tile(offsets, sizes) [K0503]
elementwise_refused.lua:40:5: error: where takes a mask (a comparison's result), got f32(4,4) [K0501]
elementwise_refused.lua:41:5: error: where between number 1 and number 2.5 has no dtype; give one side its dtype, as f32(1) [K0501]
elementwise_refused.lua:42:5: error: where of f32(4,4) and bf16(4,4): two dtypes never mix; cast one of them [K0501]
elementwise_refused.lua:43:5: error: where takes (mask, x, y), got 2 values [K0503]
elementwise_refused.lua:44:5: error: shapes (3,4) and (4,4) of where do not fit: dim 0 is 3 and 4 [K0502]
elementwise_refused.lua:45:5: error: cdiv takes integers, got f32(4,4) [K0501]
elementwise_refused.lua:46:7: error: f32(4,4) has no `shapes` (did you mean `shape`?); it has T, permute, slice, row, col, reshape, dtype, shape [K0503]
elementwise_refused.lua:47:7: error: :row() takes a tile of rank 1, got f32(4,4) [K0502]
elementwise_refused.lua:48:7: error: f32(4,4) has no `transpose`; it has T, permute, slice, row, col, reshape, dtype, shape [K0503]
elementwise_refused.lua:49:25: error: :T() takes a tile of rank 2, got f32(2,2,2) [K0502]
elementwise_refused.lua:50:19: error: a reshape of f32(6) to (4): 6 elements cannot become 4 [K0502]
elementwise_refused.lua:51:6: error: f32(4,4) cannot be indexed by number 1; read a part of a tensor with t:tile(offsets, sizes) [K0305]
elementwise_refused.lua:52:1: error: assert takes a comparison's result, got f32(4,4) [K0501]
elementwise_refused.lua:53:1: error: the message of an assert is a string, got index [K0503]
]====]
