-- compare device with string
local m = i == "x"
--[====[ expect
compare_device_with_string.lua:2:13: error: cannot compare index with a string [K0305]
]====]
