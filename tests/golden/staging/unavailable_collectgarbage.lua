-- collectgarbage
collectgarbage()
--[====[ expect
unavailable_collectgarbage.lua:2:1: error: collectgarbage is not available in kernels [K0206]
]====]
