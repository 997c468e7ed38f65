-- io
local f = io.open("x")
--[====[ expect
unavailable_io.lua:2:14: error: io.open is not available in kernels: they reach nothing outside themselves [K0206]
]====]
