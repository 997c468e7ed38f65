-- views: what may be padded, and other misuse
local K = a.K
print(K)
print(K + 1)
print(rowsum(K:slice({i, 0}, {64, 128}):tile({0, 0}, {4, 64})))
print(rowsum(K:slice({i, 3}, {64, 128}):tile({0, 0}, {4, 128})))
print(rowsum(K:slice({i, 3}, {64, 125}):tile({0, 0}, {4, 125})))
print(colsum(K:slice({i, 3}, {64, 125}):tile({0, 0}, {64, 125})))
print(rowmax(K:T():every(1, 2):tile({0, 0}, {4, 8})))
print("fine")
local x
x = rowsum(K:slice({i, 0}, {64, 128}):tile({0, 0}, {4, 128}))
x = colmax(K:slice({0, 0}, {16, 128}):at(3):tile({0}, {128}):col())
x = rowmax(a.F:slice({2, 2}, {4, 4}):T():tile({0, 0}, {4, 4}))
x = rowmax(a.F:every(0, 4):every(1, 2):tile({20, 8}, {4, 4}))
x = rowmax(a.F:reshape(4, 9):tile({0, 0}, {4, 9}))
local lo, n = a.lens:at(i), a.lens:at(j)
local k, q = K:slice({lo, 0}, {n, 128}), a.Q:slice({lo, 0}, {n, 128})
x = colsum(k:tile({8, 0}, {16, 128}) - q:tile({8, 0}, {16, 128}))
print("refused")
local other = a.Q:slice({lo, 0}, {n + 1, 128})
x = colsum(k:tile({8, 0}, {16, 128}) - other:tile({8, 0}, {16, 128}))
x = rowmax(a.F:slice({2, 2}, {4, 5}):tile({0, 0}, {4, 4}))
x = rowmax(a.F:slice({0, 2}, {4, 5}):reshape(2, 10):tile({0, 0}, {2, 10}))
-- args: tensor("K", f32, "M", 128), tensor("Q", f32, "M", 128), tensor("F", f32, 6, 6), tensor("lens", s32, "L"), out("O", f32, "M", "N")
--[====[ expect
print: fine
print: refused
views_padding.lua:3:1: error: print takes tiles and scalars, got tensor K f32(M,128); read a tile of it: t:tile(offsets, sizes) [K0503]
views_padding.lua:4:9: error: `+` takes tiles and scalars, got tensor K f32(M,128); read a tile of it: t:tile(offsets, sizes) [K0503]
views_padding.lua:9:7: error: rowmax over dim 1, which may be padded: dim 1 of K:T():every(...) is loaded at views_padding.lua:9:32 in tiles of 8 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
views_padding.lua:22:5: error: colsum over dim 0, which may be padded: dim 0 of K:slice(...) is loaded at views_padding.lua:19:14 in tiles of 16 that may reach past its end, and unknown values would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
views_padding.lua:23:5: error: rowmax over dim 1, which may be padded: dim 1 of F:slice(...) is loaded at views_padding.lua:23:38 in tiles of 4 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
views_padding.lua:24:5: error: rowmax over dim 1, which may be padded: dim 1 of F:slice(...):reshape(...) is loaded at views_padding.lua:24:53 in tiles of 10 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
]====]
