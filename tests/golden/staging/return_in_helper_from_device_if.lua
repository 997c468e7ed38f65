-- return in helper from device if
local function relu(x) if i == 0 then return x end return x*2 end a.C:store({0}, relu(zeros(f32,1)))
--[====[ expect
return_in_helper_from_device_if.lua:2:39: error: `return` out of a device if (opened at return_in_helper_from_device_if.lua:2:24); return as many values in both branches, or assign to a local and return it after the if [K0301]
  return_in_helper_from_device_if.lua:2:82: called from here
]====]
