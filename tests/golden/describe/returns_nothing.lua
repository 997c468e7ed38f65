local k = kernel { name = "k", args = { out("C", f32, "N") }, grid = function() return 1 end, body = function() end }
--[====[ expect
returns_nothing.lua:1:1: error: a kernel file returns kernel { ... } or a table name -> kernel; this one returns nil [K0401]
]====]
