-- math.random
local x = math.random()
--[====[ expect
unavailable_random.lua:2:11: error: math.random is not available in kernels: a kernel must trace the same way each time; inputs() is given a generator [K0206]
]====]
