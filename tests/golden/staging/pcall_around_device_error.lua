-- pcall around device error
local ok = pcall(function() return zeros(f32,4)+zeros(f32,5) end)
--[====[ expect
pcall_around_device_error.lua:2:48: error: shapes (4) and (5) of `+` do not fit: dim 0 is 4 and 5 [K0502]
  pcall_around_device_error.lua:2:12: called from here
]====]
