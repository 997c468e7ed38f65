-- a single kernel needs a name
return kernel { args = { out("C", f32, "N") }, grid = function() return 1 end, body = function() end }
--[====[ expect
no_name.lua:2:8: error: the kernel needs a name [K0401]
]====]
