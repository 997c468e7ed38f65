-- carried size is an error
local w=4 for k in range(0,d.K,32) do a.C:store({k}, zeros(f32,w)) w = 8 end
--[====[ expect
carried_size_is_an_error.lua:2:54: error: zeros: tile size is index, not a Lua number [K0305]
]====]
