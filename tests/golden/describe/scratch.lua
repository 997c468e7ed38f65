-- not there yet
return kernel { name = "k", args = { scratch("S", f32, "M"), out("C", f32, "M") } }
--[====[ expect
scratch.lua:2:38: error: scratch arguments are not available yet [K0206]
]====]
