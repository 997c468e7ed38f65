-- tiles, offsets, sizes and stores that are refused
local x = zeros(f32)
x = zeros(f32, 0)
x = zeros(f32, 4.5)
x = zeros(f32, d.M)
x = zeros(f32, 1, 1, 1, 1, 1, 1)
x = zeros(f32, 65536, 65536)
x = zeros("f32", 4)
x = full(f32, 4)
x = full(s8, 200, 4)
x = full(f32, i, 4)
x = full(f32, zeros(f32, 1), 4)
x = iota(2, 4)
x = iota(0, i)
x = a.E:tile({0}, {4})
x = a.A:tile({0, 0}, {4})
x = a.A:tile({0}, {4, 4})
x = a.A:tile({0.5}, {4})
x = a.A:tile({f32(1)}, {4})
x = a.A:tile({iota(0, 4)}, {4})
x = a.A:tile(0, 4)
x = a.A:tile({0}, {i})
x = a.A:tile({0}, {4}, {padding = 0})
x = a.A:tile({0}, {4}, {pad = i})
x = a.A:tile({0}, {4}, {pad = "x"})
x = a.A:tile({0}, {4}, 3)
x = a.A:tiles({0}, {4})
x = a.A[0]
a.A:store({0}, zeros(bf16, 4))
a.C:store({0}, zeros(f32, 4, 4))
a.C:store({0}, zeros(s32, 4))
a.C:store({0, 0}, zeros(f32, 4))
a.C:store({0}, "x")
a.C:store({0}, a.A)
a.C.store({0}, 1)
--[====[ expect
tiles_refused.lua:2:11: error: zeros needs sizes: zeros(f32, 64, 64) [K0503]
tiles_refused.lua:3:5: error: zeros: tile size is 0; it must be an integer of at least 1 [K0503]
tiles_refused.lua:4:5: error: zeros: tile size is 4.5; it must be an integer of at least 1 [K0503]
tiles_refused.lua:5:5: error: zeros: tile size is index, not a Lua number [K0305]
tiles_refused.lua:6:5: error: zeros needs 1 to 5 sizes, got 6 [K0503]
tiles_refused.lua:7:5: error: zeros: a tile (65536,65536) has 4294967296 elements; 16777216 are the most [K0702]
tiles_refused.lua:8:5: error: zeros needs a dtype (f32, bf16, ...), got a string [K0501]
tiles_refused.lua:9:5: error: full needs sizes: full(f32, 1, 64, 64) [K0503]
tiles_refused.lua:10:5: error: full: number 200 does not fit s8 (-128 to 127) [K0501]
tiles_refused.lua:11:5: error: full of f32 takes a number or a scalar of f32, got index [K0501]
tiles_refused.lua:12:5: error: full of f32 takes a number or a scalar of f32, got f32(1) [K0501]
tiles_refused.lua:13:5: error: iota: axis is number 2; axes count from 0 to 1 [K0503]
tiles_refused.lua:14:5: error: size of iota is index, not a Lua number [K0305]
tiles_refused.lua:15:9: error: tile of `E` needs 4 offsets, got 1 [K0502]
tiles_refused.lua:15:9: error: tile of `E` needs 4 sizes, got 1 [K0502]
tiles_refused.lua:16:9: error: tile of `A` needs 1 offset, got 2 [K0502]
tiles_refused.lua:17:9: error: tile of `A` needs 1 size, got 2 [K0502]
tiles_refused.lua:18:9: error: tile: the fraction 0.5 cannot become index [K0501]
tiles_refused.lua:19:9: error: offset 0 of tile is f32, not an integer scalar [K0503]
tiles_refused.lua:20:9: error: offset 0 of tile is index(4,1), not an integer scalar [K0503]
tiles_refused.lua:21:9: error: tile of `A` needs a list of 1 offset, got number 0 [K0503]
tiles_refused.lua:21:9: error: tile of `A` needs a list of 1 size, got number 4 [K0503]
tiles_refused.lua:22:9: error: tile size is index, not a Lua number [K0305]
tiles_refused.lua:23:9: error: tile has no option padding; it has pad [K0503]
tiles_refused.lua:24:9: error: tile: pad is a plain number, got index [K0503]
tiles_refused.lua:25:9: error: tile: pad is a plain number, got a string [K0503]
tiles_refused.lua:26:9: error: options of tile are a table {pad = x}, got number 3 [K0503]
tiles_refused.lua:27:9: error: tensor A bf16(K) has no `tiles` (did you mean `tile`?); it has tile, store, at, slice, T, permute, every, reshape, size, gather, scatter, atomic_add, atomic_min, atomic_max, atomic_and, atomic_or, atomic_xor, atomic_exchange, dtype [K0503]
tiles_refused.lua:28:8: error: tensor A bf16(K) cannot be indexed by number 0; read a part of a tensor with t:tile(offsets, sizes) [K0305]
tiles_refused.lua:29:5: error: store to the input `A`; declare it with out or inout [K0503]
tiles_refused.lua:30:5: error: store of f32(4,4) to `C`, which has rank 1 [K0502]
tiles_refused.lua:31:5: error: store of s32(4) to `C`, which is f32; cast it [K0501]
tiles_refused.lua:32:5: error: store of `C` needs 1 offset, got 2 [K0502]
tiles_refused.lua:33:5: error: store takes tiles, scalars and numbers, got a string [K0503]
tiles_refused.lua:34:5: error: store takes tiles and scalars, got tensor A bf16(K); read a tile of it: t:tile(offsets, sizes) [K0503]
tiles_refused.lua:35:1: error: store is a method: call it with a colon, x:store(...) [K0503]
]====]
