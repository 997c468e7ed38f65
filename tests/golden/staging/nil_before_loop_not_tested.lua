-- nil before loop, not-tested
local s for k in range(0,d.K,32) do if not s then s = zeros(f32,4) end end
--[====[ expect
nil_before_loop_not_tested.lua:2:44: error: `s` is nil before the loop at nil_before_loop_not_tested.lua:2:9 and set in it (at nil_before_loop_not_tested.lua:2:55): here it would be the value of the iteration before; initialise it before the loop [K0303]
]====]
