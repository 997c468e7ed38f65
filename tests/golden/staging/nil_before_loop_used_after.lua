-- nil before loop, used after
local s for k in range(0,d.K,32) do s = zeros(f32,4) end a.C:store({0}, s)
--[====[ expect
nil_before_loop_used_after.lua:2:73: error: `s` is set only in the device loop at nil_before_loop_used_after.lua:2:9: it has no value after it if the loop runs zero times [K0303]
]====]
