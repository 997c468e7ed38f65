-- mask and value alone
local x = i > 0 and d.T a.C:store({x+1}, zeros(f32,1))
--[====[ expect
mask_and_value_alone.lua:2:17: error: `mask and value` has no value where the mask is false; write `mask and x or y` or where(...) [K0305]
]====]
