-- goto continue out of device if
for k in range(0,d.K,32) do if k > 3 then goto continue end a.C:store({k}, zeros(f32,1)) ::continue:: end
--[====[ expect
goto_continue_out_of_device_if.lua:2:43: error: `goto` out of a device if (opened at goto_continue_out_of_device_if.lua:2:29); invert the condition [K0301]
]====]
