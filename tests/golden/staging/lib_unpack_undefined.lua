-- library: unpack meets an element that has no value
local t = {1, 2} for k in range(0, d.K, 32) do t[2] = k end print(table.unpack(t))
--[====[ expect
lib_unpack_undefined.lua:2:67: error: field '2' set at lib_unpack_undefined.lua:2:49 in the device loop at lib_unpack_undefined.lua:2:18 is read in the next iteration or after the loop: only locals are carried [K0303]
]====]
