-- device and effect
local function f() a.C:store({0},zeros(f32,1)) return i > 2 end local m = i > 1 and f()
--[====[ expect
device_and_effect.lua:2:81: error: the right side of `and` has an effect (store), but its left side is a device value: both sides always run [K0304]
]====]
