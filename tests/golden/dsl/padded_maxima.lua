-- maxima of what is never below 0: padding of 0 is neutral, and the hint says 0 where it is unknown
local n = i * c.BN
local x, y = a.X:tile({0, n}, {4, c.BN}), a.X:tile({0, n}, {4, c.BN}, {pad = -inf})
print("fine")
local r = rowmax(abs(x))
r = max(abs(x))
r = rowmax(x * x)
r = rowmax(abs(x) * abs(x) + x * x)
r = rowmax(sqrt(abs(x)))
r = rowmax(max(x, 0))
r = rowmax(relu(x))
r = rowmax(floor(abs(x)))
r = rowmax(where(x > 1, abs(x), 0))
r = rowmax(cast(abs(x), bf16))
r = rowmax(min(abs(x), 2))
r = rowmax(exp(y))
r = rowmax(abs(x) / 3)
print("refused")
r = rowmax(abs(x):reshape(2, 2 * c.BN))
r = rowmax(exp(x))
r = rowmax(abs(x) - 1)
r = rowmax(x * 2)
r = rowmax(-abs(x))
r = rowmin(abs(x))
r = rowmax(max(x, -1))
r = rowmax(where(x > 1, x, 0))
r = rowargmax(abs(x))
r = rowmax(sigmoid(x))
r = rowmax(abs(cast(x, s32)))
-- args: tensor("X", f32, "M", "N"), tensor("Y", f32, "D"), tensor("Z", f32, "N"), out("C", f32, "L")
--[====[ expect
print: fine
print: refused
padded_maxima.lua:19:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and unknown values would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
padded_maxima.lua:20:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and 1 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
padded_maxima.lua:21:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and -1 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_maxima.lua:22:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_maxima.lua:23:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and -0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_maxima.lua:24:5: error: rowmin over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, inf), or make the dim a const [K0504]
padded_maxima.lua:25:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_maxima.lua:26:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_maxima.lua:27:5: error: rowargmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -inf), or make the dim a const [K0504]
padded_maxima.lua:28:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and 0.5 would count there; load with pad = ..., mask with where(position < size, x, 0), or make the dim a const [K0504]
padded_maxima.lua:29:5: error: rowmax over dim 1, which may be padded: dim 1 (N) of X is loaded at padded_maxima.lua:3:18 in tiles of 64 that may reach past its end, and 0 would count there; load with pad = ..., mask with where(position < size, x, -2147483648), or make the dim a const [K0504]
]====]
