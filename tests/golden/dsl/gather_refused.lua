-- gather, scatter, atomics: what is refused
local ids = a.ids:tile({i * 8}, {8})
local x
x = a.E:gather({ids})
x = a.E:gather(ids)
x = a.E:gather({ids, iota(1, 16)})
x = a.E:gather({ids:col(), iota(0, 16)})
x = a.E:gather({cast(ids, f32), 0})
x = a.E:gather({0.5, 0})
x = a.E:gather({ids, ids}, {mask = 1})
x = a.E:gather({ids, ids}, {pad = "x"})
x = a.N:gather({ids}, {pad = 0.5})
x = a.E:gather({ids:reshape(8, 1, 1), ids:reshape(1, 8, 1), ids})
x = a.E:gather({iota(0, 8192), iota(1, 8192)})
a.E:scatter({ids, 0}, 1)
a.O:every(0, 2):scatter({ids, 0}, 1)
a.O:scatter({ids, 0}, zeros(f32, 4))
a.O:scatter({i, 0}, zeros(f32, 4, 4))
a.O:scatter({ids, 0}, zeros(s32, 8))
a.O:scatter({ids:col(), iota(1, 16)}, zeros(f32, 8))
a.N:scatter({ids}, 0.5)
x = a.E:atomic_add({ids, 0}, 1)
x = a.U:atomic_add({ids}, 1)
x = a.O:atomic_and({ids, 0}, 1)
x = a.U:atomic_min({ids}, 1)
x = a.H:atomic_exchange({ids}, 1)
x = a.N:atomic_or({ids}, 1.5)
x = a.N:atomic_xor({ids}, zeros(s32, 4))
x = a.N:atomic_sub({ids}, 1)
x = a.N:atomic_add({ids}, zeros(s32, 8)) + 1.5
print("padding")
local col = iota(1, 16)
x = rowmax(a.E:gather({ids:col(), col}))
x = colmax(a.E:gather({ids:col(), col}, {pad = -inf}))
x = colsum(a.E:gather({ids:col(), col}))
x = rowmax(a.E:gather({ids:col(), 15 - col}))
x = rowmax(a.E:gather({ids:col(), (ids % 8):row()}))
print("padding refused")
x = colmax(a.E:gather({ids:col(), col}))
x = rowmax(a.E:gather({ids:col(), ids:row()}))
x = rowmax(a.E:gather({ids:col(), col + 1}))
x = rowmax(a.E:slice({0, 4}, {8, 14}):gather({ids:col(), iota(1, 14)}))
-- args: tensor("ids", s32, "B"), tensor("E", f32, "V", 16), inout("N", s32, "L"), out("O", f32, "B", 16), inout("U", u8, "L"), inout("H", f16, "L")
--[====[ expect
print: padding
print: padding refused
gather_refused.lua:4:9: error: gather of `E` needs 2 indices, got 1 [K0502]
gather_refused.lua:5:9: error: gather of `E` needs a list of 2 indices, got s32(8) [K0503]
gather_refused.lua:6:9: error: gather of `E`: indices index(8) and index(1,16) have different ranks; give them one with :row(), :col() or :reshape(...) [K0502]
gather_refused.lua:7:9: error: gather of `E`: index 1 is index(16,1), the others (8,1): sizes are equal or 1 [K0502]
gather_refused.lua:8:9: error: index 0 of gather is f32(8), not integers [K0503]
gather_refused.lua:9:9: error: gather: the fraction 0.5 cannot become index [K0501]
gather_refused.lua:10:9: error: gather has no option mask; it has pad [K0503]
gather_refused.lua:11:9: error: gather: pad is a plain number, got a string [K0503]
gather_refused.lua:12:9: error: gather: pad: the fraction 0.5 cannot become s32 [K0501]
gather_refused.lua:13:9: error: gather of `E` needs 2 indices, got 3 [K0502]
gather_refused.lua:14:9: error: gather of `E`: a tile (8192,8192) has 67108864 elements; 16777216 are the most [K0702]
gather_refused.lua:15:5: error: scatter to the input `E`; declare it with out or inout [K0503]
gather_refused.lua:16:17: error: scatter to `O:every(...)`: after every() several coordinates are one element; write to the tensor itself [K0503]
gather_refused.lua:17:5: error: scatter of f32(4) to `O` at indices that select (8); a tile at an offset has indices offset + iota(0, n) and offset + iota(1, n) [K0502]
gather_refused.lua:18:5: error: scatter of f32(4,4) to `O` at indices that select one element; a tile at an offset has indices offset + iota(0, n) and offset + iota(1, n) [K0502]
gather_refused.lua:19:5: error: scatter of s32(8) to `O`, which is f32; cast it [K0501]
gather_refused.lua:20:5: error: scatter of f32(8) to `O` at indices that select (8,16); a tile at an offset has indices offset + iota(0, n) and offset + iota(1, n) [K0502]
gather_refused.lua:21:5: error: scatter: the fraction 0.5 cannot become s32 [K0501]
gather_refused.lua:22:9: error: atomic_add to the input `E`; declare it with out or inout [K0503]
gather_refused.lua:23:9: error: atomic_add to `U`, which is u8; it takes f64, f32, f16, bf16, s64 or s32 [K0501]
gather_refused.lua:24:9: error: atomic_and to `O`, which is f32; it takes s64 or s32 [K0501]
gather_refused.lua:25:9: error: atomic_min to `U`, which is u8; it takes f32, s64 or s32 [K0501]
gather_refused.lua:26:9: error: atomic_exchange to `H`, which is f16; it takes f64, f32, s64 or s32 [K0501]
gather_refused.lua:27:9: error: atomic_or: the fraction 1.5 cannot become s32 [K0501]
gather_refused.lua:28:9: error: atomic_xor of s32(4) to `N` at indices that select (8); a tile at an offset has indices offset + iota(0, n) and offset + iota(1, n) [K0502]
gather_refused.lua:29:9: error: tensor N s32(L) has no `atomic_sub`; it has tile, store, at, slice, T, permute, every, reshape, size, gather, scatter, atomic_add, atomic_min, atomic_max, atomic_and, atomic_or, atomic_xor, atomic_exchange, dtype [K0503]
gather_refused.lua:30:42: error: the fraction 1.5 cannot become s32 [K0501]
gather_refused.lua:39:5: error: colmax over dim 0, which may be padded: index 0 of the gather from E at gather_refused.lua:39:16 may be out of range, and 0 would count there; gather with pad = ..., or mask with where(position < size, x, -inf) [K0504]
gather_refused.lua:40:5: error: rowmax over dim 1, which may be padded: index 1 of the gather from E at gather_refused.lua:40:16 may be out of range, and 0 would count there; gather with pad = ..., or mask with where(position < size, x, -inf) [K0504]
gather_refused.lua:41:5: error: rowmax over dim 1, which may be padded: index 1 of the gather from E at gather_refused.lua:41:16 may be out of range, and 0 would count there; gather with pad = ..., or mask with where(position < size, x, -inf) [K0504]
gather_refused.lua:42:5: error: rowmax over dim 1, which may be padded: index 1 of the gather from E:slice(...) at gather_refused.lua:42:39 may be out of range, and 0 would count there; gather with pad = ..., or mask with where(position < size, x, -inf) [K0504]
]====]
