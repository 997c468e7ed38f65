-- __mode
local t = setmetatable({}, {__mode = "k"})
--[====[ expect
unavailable_mode.lua:2:11: error: __mode is not available in kernels [K0206]
]====]
