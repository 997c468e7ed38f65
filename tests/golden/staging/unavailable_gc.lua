-- __gc
local t = setmetatable({}, {__gc = function() end})
--[====[ expect
unavailable_gc.lua:2:11: error: __gc is not available in kernels [K0206]
]====]
