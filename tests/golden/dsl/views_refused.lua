-- views: what is refused
local K, O = a.K, a.O
K:at()
K:at(1, 2, 3)
K:at(1.5)
K:at(zeros(f32, 4, 4))
K:slice({0, 0}, {4})
K:slice({0, 0}, {4, -1})
K:slice({0}, {4, 4})
K:slice(0, 4)
a.Q:T()
K:permute(0, 0)
K:permute(1)
K:permute(i, 0)
K:every(2, 4)
K:every(0, 0)
K:every(0, 2.5)
K:reshape()
K:reshape(1, 2, 3, 4, 5, 6)
a.F:reshape(7, 5)
K:size(5)
K:at(0):store({0}, full(f32, 1, 4))
O:every(0, 2):store({0, 0}, full(f32, 1, 4, 4))
O:store({0}, 1)
O:slice({0, 0}, {4, 4}):store({0}, 1)
O:at(1).nothing()
O:slcie({0, 0}, {4, 4})
local v = O
for k in range(0, 4) do
  v = v:T()
end
local w
for k in range(0, 4) do
  w = O:at(k)
end
w:store({0}, 1)
if i > 3 then
  K = K:T()
end
-- args: tensor("Q", f32, "B", "H", 4, "L"), tensor("K", f32, "M", 128), tensor("F", f32, 6, 6), out("O", f32, "M", "N")
--[====[ expect
views_refused.lua:3:3: error: at of `K` takes 1 to 2 indices, got 0 [K0502]
views_refused.lua:4:3: error: at of `K` takes 1 to 2 indices, got 3 [K0502]
views_refused.lua:5:3: error: at: the fraction 1.5 cannot become index [K0501]
views_refused.lua:6:3: error: index 0 of at is f32(4,4), not an integer scalar [K0503]
views_refused.lua:7:3: error: slice of `K` needs 2 sizes, got 1 [K0502]
views_refused.lua:8:3: error: size 1 of slice is -1; the least is 0 [K0503]
views_refused.lua:9:3: error: slice of `K` needs 2 offsets, got 1 [K0502]
views_refused.lua:10:3: error: slice of `K` needs a list of 2 offsets, got number 0 [K0503]
views_refused.lua:10:3: error: slice of `K` needs a list of 2 sizes, got number 4 [K0503]
views_refused.lua:11:5: error: :T() takes a view of rank 2, `Q` has rank 4; permute its dims with :permute(...) [K0502]
views_refused.lua:12:3: error: permute of `K` names each of its dims 0 to 1 once, as plain numbers [K0502]
views_refused.lua:13:3: error: permute of `K` names each of its dims 0 to 1 once, as plain numbers [K0502]
views_refused.lua:14:3: error: permute of `K` names each of its dims 0 to 1 once, as plain numbers [K0502]
views_refused.lua:15:3: error: every: axis is number 2; axes count from 0 to 1 [K0503]
views_refused.lua:16:3: error: the count of every is 0; it must be an integer of at least 1 [K0503]
views_refused.lua:17:3: error: the count of every is 2.5; it must be an integer of at least 1 [K0503]
views_refused.lua:18:3: error: reshape of `K` takes 1 to 5 sizes, got 0 [K0502]
views_refused.lua:19:3: error: reshape of `K` takes 1 to 5 sizes, got 6 [K0502]
views_refused.lua:20:5: error: a reshape of `F` to (7,5): 36 elements cannot become 35 [K0502]
views_refused.lua:21:3: error: size: axis is number 5; axes count from 0 to 1 [K0503]
views_refused.lua:22:9: error: store to the input `K`; declare it with out or inout [K0503]
views_refused.lua:23:15: error: store to `O:every(...)`: after every() several coordinates are one element; write to the tensor itself [K0503]
views_refused.lua:24:3: error: store of `O` needs 2 offsets, got 1 [K0502]
views_refused.lua:25:25: error: store of `O:slice(...)` needs 2 offsets, got 1 [K0502]
views_refused.lua:26:9: error: O:at(...), a view f32(?) has no `nothing`; it has tile, store, at, slice, T, permute, every, reshape, size, gather, scatter, atomic_add, atomic_min, atomic_max, atomic_and, atomic_or, atomic_xor, atomic_exchange, dtype [K0503]
views_refused.lua:27:3: error: tensor O f32(M,N) has no `slcie` (did you mean `slice`?); it has tile, store, at, slice, T, permute, every, reshape, size, gather, scatter, atomic_add, atomic_min, atomic_max, atomic_and, atomic_or, atomic_xor, atomic_exchange, dtype [K0503]
views_refused.lua:30:7: error: `v` (tensor O f32(M,N)) changes in the device loop at views_refused.lua:29:1 (set at views_refused.lua:30:9): only device values, numbers and booleans can be carried [K0303]
views_refused.lua:36:1: error: `w` is set only in the device loop at views_refused.lua:33:1: it has no value after it if the loop runs zero times [K0303]
]====]
