-- math.max device
local s = math.max(i, 1)
--[====[ expect
math_max_device.lua:2:11: error: math.max of index: use max [K0305]
]====]
