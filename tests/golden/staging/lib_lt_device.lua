-- library: math.max of objects whose __lt gives a mask
local M = {__lt = function(p, q) return i < 3 end} print(math.max(setmetatable({}, M), setmetatable({}, M)))
--[====[ expect
lib_lt_device.lua:2:58: error: __lt: the comparison gave bool [K0305]
]====]
