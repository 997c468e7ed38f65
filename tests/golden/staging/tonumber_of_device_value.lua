-- tonumber of a device value
local n = tonumber(i)
--[====[ expect
tonumber_of_device_value.lua:2:11: error: tonumber of index: a device value is not a Lua number [K0305]
]====]
