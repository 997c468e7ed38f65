-- carried changes shape
local s = zeros(f32,4)
for k in range(0,d.K,32) do s = s:col() end
--[====[ expect
carried_changes_shape.lua:3:33: error: `s` is f32(4) at the start of the loop at carried_changes_shape.lua:3:1 and f32(4,1) at the end of an iteration (set at carried_changes_shape.lua:3:35) [K0303]
]====]
