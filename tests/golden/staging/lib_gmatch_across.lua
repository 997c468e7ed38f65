-- library: a gmatch iterator from outside steps in a device loop
local it = ("4 5 6"):gmatch("%d") for k in range(0, d.K, 32) do a.C:store({k + tonumber(it())}, zeros(f32, 1)) end
--[====[ expect
lib_gmatch_across.lua:2:89: error: field '1' set at lib_gmatch_across.lua:2:89 in the device loop at lib_gmatch_across.lua:2:35 is read in the next iteration or after the loop: only locals are carried [K0303]
lib_gmatch_across.lua:2:89: error: field '2' set at lib_gmatch_across.lua:2:89 in the device loop at lib_gmatch_across.lua:2:35 is read in the next iteration or after the loop: only locals are carried [K0303]
]====]
