-- coroutines
local co = coroutine.wrap(function() end)
--[====[ expect
coroutines.lua:2:22: error: coroutines are not available in kernels (coroutine.wrap) [K0206]
]====]
