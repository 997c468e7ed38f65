-- loop index global after
for k in range(0,d.K,32) do end a.C:store({k}, zeros(f32,1))
--[====[ expect
loop_index_global_after.lua:2:37: error: store of `C` needs 1 offset, got 0 [K0502]
]====]
