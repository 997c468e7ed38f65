-- break out of device loop
for k in range(0,d.K,32) do if c.causal then break end end
--[====[ expect
break_out_of_device_loop.lua:2:46: error: `break` out of a device loop (opened at break_out_of_device_loop.lua:2:1) [K0301]
]====]
