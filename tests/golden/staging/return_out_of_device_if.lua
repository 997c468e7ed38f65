-- return out of device if
if i == 0 then return end a.C:store({0},zeros(f32,1))
--[====[ expect
return_out_of_device_if.lua:2:16: error: `return` out of a device if (opened at return_out_of_device_if.lua:2:1); return as many values in both branches, or assign to a local and return it after the if [K0301]
]====]
