-- repeat until device
local n=zeros(f32,1) repeat n = n + 1 until sum(n) > 3
--[====[ expect
repeat_until_device.lua:2:22: error: `repeat ... until` on a device condition; use while [K0301]
]====]
