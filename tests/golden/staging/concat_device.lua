-- concat device
local s = "x"..i
--[====[ expect
concat_device.lua:2:14: error: cannot concatenate a string and index [K0305]
]====]
