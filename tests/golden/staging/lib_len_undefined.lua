-- library: the length of a list that a device loop wrote
local t = {1} for k in range(0, d.K, 32) do t[2] = k end table.insert(t, 3)
--[====[ expect
lib_len_undefined.lua:2:58: error: field '2' set at lib_len_undefined.lua:2:46 in the device loop at lib_len_undefined.lua:2:15 is read in the next iteration or after the loop: only locals are carried [K0303]
]====]
