-- for ... in over a device value
for x in zeros(f32, 4) do
end
--[====[ expect
for_in_over_device_value.lua:2:1: error: `for ... in` over f32(4); write range(...) [K0301]
]====]
