-- no kernel at all
return {}
--[====[ expect
empty.lua:1:1: error: a kernel file returns kernel { ... } or a table name -> kernel; this one returns an empty table [K0401]
]====]
