-- # of a device value
local n = #zeros(f32, 4)
--[====[ expect
length_of_device_value.lua:2:11: error: cannot take the length of f32(4) [K0305]
]====]
