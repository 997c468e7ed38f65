-- _ENV
local e = _ENV
--[====[ expect
unavailable_env.lua:2:11: error: `_ENV` is not available in kernels [K0206]
]====]
