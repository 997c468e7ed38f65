-- reducing over a dim that may be padded: refused unless the padding is neutral, chosen or masked
local n = i * c.BN
local x = a.X:tile({0, n}, {4, c.BN})
print("refused")
local r = rowmax(x)
r = rowsum(exp(x))
r = rowsum(x + 1)
r = rowsum((x - 3) * (x - 3))
r = rowsum(where(x > 0, x, 1))
r = colsum(exp(x))
r = max(x)
r = dot(exp(x), a.X:tile({0, n}, {4, c.BN}, {pad = 1}):T())
r = dot(x, a.X:tile({0, n}, {4, c.BN}, {pad = -inf}):T())
print("fine")
r = rowsum(x)
r = rowsum(x * x * 2)
r = rowmax(a.X:tile({0, n}, {4, c.BN}, {pad = -inf}))
r = rowsum(exp(a.X:tile({0, n}, {4, c.BN}, {pad = -inf})))
local col = n + iota(1, c.BN)
r = rowmax(where(col < d.N, x, -inf))
r = rowsum(where(col < d.N, exp(x), 0))
r = rowmax(a.X:tile({0, 0}, {4, 128}) * 1)
r = dot(x, a.X:tile({0, n}, {4, c.BN}):T())
r = rowsum(abs(where(x > 0, x, 0)))
r = rowmax(x - where(col < d.N, f32(0), inf))
print("constants bound it")
for k in range(0, c.D, c.BK) do
  r = colmax(a.Y:tile({k}, {c.BK}):col())
end
for k in range(0, c.D, 48) do
  r = colmax(a.Y:tile({k}, {48}):col())
end
r = colmax(a.Y:tile({64}, {64}):col())
r = colmax(a.Y:tile({96}, {64}):col())
print("carried around a loop")
local acc, top = zeros(f32, 4, c.BN), full(f32, 1, 4, c.BN)
for k in range(0, d.N, c.BN) do
  local t = a.X:tile({0, k}, {4, c.BN})
  acc = acc + t
  top = top + t
end
r = rowsum(acc)
r = rowsum(top)
-- args: tensor("X", f32, "M", "N"), tensor("Y", f32, "D"), tensor("Z", f32, "N"), out("C", f32, "L")
--[====[ expect
print: refused
print: fine
print: constants bound it
print: carried around a loop
padded_reductions.lua:5:11: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_reductions.lua:3:15 in tiles of 64 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_reductions.lua:6:5: error: rowsum over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_reductions.lua:3:15 in tiles of 64 that may reach past its end, and 1 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
padded_reductions.lua:7:5: error: rowsum over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_reductions.lua:3:15 in tiles of 64 that may reach past its end, and 1 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
padded_reductions.lua:8:5: error: rowsum over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_reductions.lua:3:15 in tiles of 64 that may reach past its end, and 9 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
padded_reductions.lua:9:5: error: rowsum over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_reductions.lua:3:15 in tiles of 64 that may reach past its end, and 1 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
padded_reductions.lua:10:5: error: colsum over dim 0, which may be padded: dim 0 (M) of X is loaded at padded_reductions.lua:3:15 in tiles of 4 that may reach past its end, and 1 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
padded_reductions.lua:11:5: error: max over dim 0, which may be padded: dim 0 (M) of X is loaded at padded_reductions.lua:3:15 in tiles of 4 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_reductions.lua:12:5: error: dot over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_reductions.lua:3:15 in tiles of 64 that may reach past its end, and 1 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
padded_reductions.lua:13:5: error: dot over K, which may be padded: the second operand holds -inf there, and times the other's 0 that is not 0; load it with pad = 0, or mask it with where [K0504]
padded_reductions.lua:22:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_reductions.lua:22:16 in tiles of 128 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_reductions.lua:31:7: error: colmax over dim 0, which may be padded: dim 0 (D) of Y is loaded at padded_reductions.lua:31:18 in tiles of 48 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_reductions.lua:34:5: error: colmax over dim 0, which may be padded: dim 0 (D) of Y is loaded at padded_reductions.lua:34:16 in tiles of 64 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_reductions.lua:43:5: error: rowsum over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_reductions.lua:38:17 in tiles of 64 that may reach past its end, and 1 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
]====]
