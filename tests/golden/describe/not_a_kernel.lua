-- what a file returns
return 3
--[====[ expect
not_a_kernel.lua:1:1: error: a kernel file returns kernel { ... } or a table name -> kernel; this one returns number 3 [K0401]
]====]
