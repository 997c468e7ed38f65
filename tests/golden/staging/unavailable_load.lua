-- load
local f = load("return 1")
--[====[ expect
unavailable_load.lua:2:11: error: load is not available in kernels: code comes from files; use require [K0206]
]====]
