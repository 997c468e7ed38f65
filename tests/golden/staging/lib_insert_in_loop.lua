-- library: a list that grows in a device loop
local t = {} for k in range(0, d.K, 32) do table.insert(t, k) end
--[====[ expect
lib_insert_in_loop.lua:2:44: error: the loop at lib_insert_in_loop.lua:2:14 never settles: a table grows in it (field '1' at lib_insert_in_loop.lua:2:44) [K0302]
]====]
