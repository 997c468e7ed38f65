-- folds of what may be padded: the padding must not count
local x = a.X:tile({i, j}, {4, 8})
local n = a.X:tile({i, j}, {4, 8}, {pad = -inf})
local z = a.Z:tile({i, j}, {4, 8})
local col = j + iota(1, 8)
local y = rowany(x > 0)
y = rowall(x > 0)
y = rowall(x >= 0)
y = rowany(x < 1)
y = rowany(x < 1 and col < d.N)
y = rowall(x > 0 or col >= d.N)
y = rowargmax(x)
y = rowargmax(n)
y = rowargmax(where(col < d.N, x, -inf))
y = argmin(x)
y = colargmin(n)
y = rowargmax(z)
y = rowmax(z)
y = rowmax(cast(where(z > 0, -128, -128), s8))
y = cumsum(x, 1)
y = cumsum(x + 1, 1)
y = cumsum(n, 1)
y = rowsum(cumsum(x, 0))
y = rowsum(cumsum(x + 1, 0))
y = rowsum(cumsum(x, 1))
y = rowsum(x:permute(1, 0):slice({0, 0}, {3, 3}))
y = rowsum((x + 1):permute(1, 0))
y = rowsum(cat(1, x, zeros(f32, 4, 2)))
y = rowsum(cat(1, zeros(f32, 4, 2), x, x))
y = rowsum(cat(1, x, x + 1))
y = rowsum(cast(bitcast(x, s32), f32))
y = rowsum(cast(bitcast(x + 1, s32), f32))
-- args: tensor("X", f32, "M", "N"), tensor("Z", s8, "M", "N"), out("C", f32, "L")
--[====[ expect
folds_padded.lua:7:5: error: rowall over dim 1, which may be padded: dim 1 (N) of X is loaded at folds_padded.lua:2:15 in tiles of 8 that may reach past its end, and false would count there; load with pad = ..., join the mask with `or position >= size`, or make the dim a const [K0504]
folds_padded.lua:9:5: error: rowany over dim 1, which may be padded: dim 1 (N) of X is loaded at folds_padded.lua:2:15 in tiles of 8 that may reach past its end, and true would count there; load with pad = ..., join the mask with `and position < size`, or make the dim a const [K0504]
folds_padded.lua:12:5: error: rowargmax over dim 1, which may be padded: dim 1 (N) of X is loaded at folds_padded.lua:2:15 in tiles of 8 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
folds_padded.lua:15:5: error: argmin over dim 0, which may be padded: dim 0 (M) of X is loaded at folds_padded.lua:2:15 in tiles of 4 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, inf), or make the dim a const [K0504]
folds_padded.lua:17:5: error: rowargmax over dim 1, which may be padded: dim 1 (N) of X is loaded at folds_padded.lua:2:15 in tiles of 8 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -128), or make the dim a const [K0504]
folds_padded.lua:18:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at folds_padded.lua:2:15 in tiles of 8 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -128), or make the dim a const [K0504]
folds_padded.lua:21:5: error: cumsum over dim 1, which may be padded: dim 1 (N) of X is loaded at folds_padded.lua:2:15 in tiles of 8 that may reach past its end, and 1 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
folds_padded.lua:24:12: error: cumsum over dim 0, which may be padded: dim 0 (M) of X is loaded at folds_padded.lua:2:15 in tiles of 4 that may reach past its end, and 1 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
folds_padded.lua:25:5: error: rowsum over dim 1, which may be padded: dim 1 (N) of X is loaded at folds_padded.lua:2:15 in tiles of 8 that may reach past its end, and unknown values would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
folds_padded.lua:27:5: error: rowsum over dim 1, which may be padded: dim 0 (M) of X is loaded at folds_padded.lua:2:15 in tiles of 4 that may reach past its end, and 1 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
folds_padded.lua:30:5: error: rowsum over dim 1, which may be padded: dim 1 (N) of X is loaded at folds_padded.lua:2:15 in tiles of 8 that may reach past its end, and unknown values would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
folds_padded.lua:32:5: error: rowsum over dim 1, which may be padded: dim 1 (N) of X is loaded at folds_padded.lua:2:15 in tiles of 8 that may reach past its end, and unknown values would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
]====]
