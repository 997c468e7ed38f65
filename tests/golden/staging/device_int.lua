-- device / int
local x = i / 2
--[====[ expect
device_int.lua:2:13: error: '/' on device integers; use '//' [K0501]
]====]
