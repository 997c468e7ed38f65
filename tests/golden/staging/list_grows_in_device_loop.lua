-- list grows in device loop
local t={} for k in range(0,d.K,32) do t[#t+1] = k end
--[====[ expect
list_grows_in_device_loop.lua:2:42: error: the loop at list_grows_in_device_loop.lua:2:12 never settles: a table grows in it (field '1' at list_grows_in_device_loop.lua:2:41) [K0302]
]====]
