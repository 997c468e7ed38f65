-- closure assigns outer local in loop
local s = zeros(f32,4) local function add(v) s = s + v end for k in range(0,d.K,32) do add(1) add(k - k + 0 == 0 and 2.0 or 1.0) end a.C:store({0}, s)
--[====[ expect
closure_assigns_outer_local_in_loop.lua:2:122: error: `mask and x or y` between number 2 and number 1 has no dtype; give one side its dtype, as f32(2) [K0501]
]====]
