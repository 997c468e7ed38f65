-- parts, joins and bits that are refused
local x, v = zeros(f32, 4, 8), zeros(f32, 3)
local y = x:permute(0)
y = x:permute(0, 0)
y = x:permute(1, 2)
y = x:permute(i, 0)
y = x:permute({1, 0, 2})
y = x:permute("1", 0)
y = f32(1):permute()
y = x:slice({0, 0}, {5, 8})
y = x:slice({3, 8}, {1, 1})
y = x:slice({-1, 0}, {1, 1})
y = x:slice({0}, {1, 1})
y = x:slice({0, 0}, {1})
y = x:slice({0, 0}, {0, 1})
y = x:slice({0, i}, {1, 1})
y = x:slice(0, 1)
y = x:slice({0, 0.5}, {1, 1})
y = cat()
y = cat(0)
y = cat(x, x)
y = cat(2, x, x)
y = cat(0, x, v)
y = cat(1, x, zeros(f32, 3, 8))
y = cat(0, x, zeros(bf16, 4, 8))
y = cat(0, x, 1)
y = cat(0, x, f32(1))
y = cat(0, x, a.A)
y = bitcast(x, bool)
y = bitcast(x > 0, s8)
y = bitcast(i, s64)
y = bitcast(v, f64)
y = bitcast(f32(1), s8)
y = bitcast(x)
y = bitcast(1, s32)
y = bitcast(zeros(s4, 3), s8)
y = x:slices({0, 0}, {1, 1})
--[====[ expect
parts_refused.lua:3:13: error: :permute(...) needs 2 axes, got 1 [K0502]
parts_refused.lua:4:7: error: :permute of f32(4,8) names each of the axes 0 to 1 once, in their new order [K0503]
parts_refused.lua:5:7: error: :permute of f32(4,8) names each of the axes 0 to 1 once, in their new order [K0503]
parts_refused.lua:6:7: error: axis 0 of :permute(...) is index, not a whole Lua number [K0305]
parts_refused.lua:7:7: error: :permute(...) needs 2 axes, got 3 [K0502]
parts_refused.lua:8:7: error: axis 0 of :permute(...) is a string, not a whole Lua number [K0305]
parts_refused.lua:9:12: error: :permute(...) takes a tile, got f32 [K0503]
parts_refused.lua:10:7: error: :slice: 5 elements from 0 on are not inside dim 0 of f32(4,8) [K0502]
parts_refused.lua:11:7: error: :slice: 1 element from 8 on is not inside dim 1 of f32(4,8) [K0502]
parts_refused.lua:12:7: error: :slice: 1 element from -1 on is not inside dim 0 of f32(4,8) [K0502]
parts_refused.lua:13:7: error: :slice needs 2 offsets, got 1 [K0502]
parts_refused.lua:14:7: error: :slice needs 2 sizes, got 1 [K0502]
parts_refused.lua:15:7: error: :slice: size 0 is 0; it must be at least 1 [K0503]
parts_refused.lua:16:7: error: offset 1 of :slice is index, not a whole Lua number [K0305]
parts_refused.lua:17:7: error: :slice takes two lists, x:slice({0, 0}, {4, 8}): offsets is number 0 [K0503]
parts_refused.lua:17:7: error: :slice takes two lists, x:slice({0, 0}, {4, 8}): sizes is number 1 [K0503]
parts_refused.lua:18:7: error: offset 1 of :slice is number 0.5, not a whole Lua number [K0305]
parts_refused.lua:19:5: error: cat takes (axis, x, y, ...), got nothing [K0503]
parts_refused.lua:20:5: error: cat takes (axis, x, y, ...), got no tile [K0503]
parts_refused.lua:21:5: error: cat takes (axis, x, y, ...), got f32(4,8) [K0503]
parts_refused.lua:22:5: error: cat: axis is number 2; axes count from 0 to 1 [K0503]
parts_refused.lua:23:5: error: cat of f32(4,8) and f32(3): they may differ along axis 0 alone [K0502]
parts_refused.lua:24:5: error: cat of f32(4,8) and f32(3,8): they may differ along axis 1 alone [K0502]
parts_refused.lua:25:5: error: cat of f32(4,8) and bf16(4,8): two dtypes never mix; cast one of them [K0501]
parts_refused.lua:26:5: error: cat takes tiles and scalars, got number 1 [K0503]
parts_refused.lua:27:5: error: cat: operand 2 is f32; it joins tiles: full(dtype, x, 1) [K0503]
parts_refused.lua:28:5: error: cat takes tiles and scalars, got tensor A bf16(K); read a tile of it: t:tile(offsets, sizes) [K0503]
parts_refused.lua:29:5: error: bitcast of f32(4,8) to bool: bool has no bits to speak of; use cast [K0501]
parts_refused.lua:30:5: error: bitcast of bool(4,8) to s8: bool has no bits to speak of; use cast [K0501]
parts_refused.lua:31:5: error: bitcast of index to s64: index has no bits to speak of; use cast [K0501]
parts_refused.lua:32:5: error: bitcast of f32(3) to f64: the last dim, 3 elements of 32 bits, is no whole number of elements of 64 [K0502]
parts_refused.lua:33:5: error: bitcast of a scalar f32 to s8: 32 bits are not 8 [K0501]
parts_refused.lua:34:5: error: bitcast needs a dtype (f32, bf16, ...), got nil [K0501]
parts_refused.lua:35:5: error: bitcast takes tiles and scalars, got number 1 [K0503]
parts_refused.lua:36:5: error: bitcast of s4(3) to s8: the last dim, 3 elements of 4 bits, is no whole number of elements of 8 [K0502]
parts_refused.lua:37:7: error: f32(4,8) has no `slices` (did you mean `slice`?); it has T, permute, slice, row, col, reshape, dtype, shape [K0503]
]====]
