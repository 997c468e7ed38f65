-- float carried no dtype
local s = 0.5 for k in range(0,d.K,32) do s = s * 2 end
--[====[ expect
float_carried_no_dtype.lua:2:47: error: `s` changes in the device loop at float_carried_no_dtype.lua:2:15 (set at float_carried_no_dtype.lua:2:49) but has no dtype: start it with f32(0.5) [K0303]
]====]
