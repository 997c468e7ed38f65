-- numeric for device bound
for k=0,d.K do end
--[====[ expect
numeric_for_device_bound.lua:2:11: error: a plain `for` needs numbers, got index; write `for k in range(lo, hi, step)` [K0301]
]====]
