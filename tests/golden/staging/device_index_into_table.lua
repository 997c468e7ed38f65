-- device index into table
local t={1,2,3} local v = t[i] 
--[====[ expect
device_index_into_table.lua:2:28: error: a Lua table cannot be indexed by index; use a plain loop or where [K0305]
]====]
