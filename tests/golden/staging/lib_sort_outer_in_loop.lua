-- library: a list from outside, sorted in a device loop and read again
local t = {3, 1, 2} for k in range(0, d.K, 32) do table.sort(t) a.C:store({k + t[1]}, zeros(f32, 1)) end print(t[1])
--[====[ expect
lib_sort_outer_in_loop.lua:2:51: error: field '3' set at lib_sort_outer_in_loop.lua:2:51 in the device loop at lib_sort_outer_in_loop.lua:2:21 is read in the next iteration or after the loop: only locals are carried [K0303]
]====]
