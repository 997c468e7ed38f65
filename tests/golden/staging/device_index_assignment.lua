-- t[dev] = v
local t = {}
t[i] = 1
--[====[ expect
device_index_assignment.lua:3:2: error: a Lua table cannot be indexed by index; use a plain loop or where [K0305]
]====]
