-- values of the table that are no kernels, keys that are no names
local k = kernel { args = { out("C", f32, "N") }, grid = function() return 1 end, body = function() end }
return { good = k, bad = 3, ["not a name"] = k, [1] = k }
--[====[ expect
table_of_others.lua:1:1: error: the table of kernels: a key is number 1; keys are names [K0401]
table_of_others.lua:1:1: error: a kernel file returns kernel { ... } or a table name -> kernel; `bad` is number 3 [K0401]
table_of_others.lua:2:11: error: the name of a kernel is made of letters, digits and _; got "not a name" [K0401]
]====]
