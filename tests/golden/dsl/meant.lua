-- names that do not exist: what was meant
local x = a.A:tile({0}, {4})
local z = x:rowsum()
z = x:reshap(2, 2)
z = x.sqrt
local y = a.A:stroe({0}, x)
y = rng
y = rowsums(x)
--[====[ expect
meant.lua:3:13: error: bf16(4) has no `rowsum`, call it as rowsum(x); it has T, permute, slice, row, col, reshape, dtype, shape [K0503]
meant.lua:4:7: error: bf16(4) has no `reshap` (did you mean `reshape`?); it has T, permute, slice, row, col, reshape, dtype, shape [K0503]
meant.lua:5:7: error: bf16(4) has no `sqrt`, call it as sqrt(x); it has T, permute, slice, row, col, reshape, dtype, shape [K0503]
meant.lua:6:15: error: tensor A bf16(K) has no `stroe` (did you mean `store`?); it has tile, store, at, slice, T, permute, every, reshape, size, gather, scatter, atomic_add, atomic_min, atomic_max, atomic_and, atomic_or, atomic_xor, atomic_exchange, dtype [K0503]
meant.lua:8:5: error: attempt to call a nil value (global 'rowsums') (did you mean `rowsum`?) [K0201]
]====]
