-- library: pairs meets a field that has no value
local t = {x = 1} for k in range(0, d.K, 32) do t.y = k end for k, v in pairs(t) do end
--[====[ expect
lib_pairs_undefined.lua:2:61: error: field 'y' set at lib_pairs_undefined.lua:2:51 in the device loop at lib_pairs_undefined.lua:2:19 is read in the next iteration or after the loop: only locals are carried [K0303]
]====]
