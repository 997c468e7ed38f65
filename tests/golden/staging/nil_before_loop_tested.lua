-- nil before loop, tested
local s for k in range(0,d.K,32) do if s == nil then s = zeros(f32,4) else s = s + 1 end end
--[====[ expect
nil_before_loop_tested.lua:2:40: error: `s` is nil before the loop at nil_before_loop_tested.lua:2:9 and set in it (at nil_before_loop_tested.lua:2:58): here it would be the value of the iteration before; initialise it before the loop [K0303]
]====]
