-- a range is no value to compute with
local r = range(0, 4)
local x = r + 1
--[====[ expect
range_outside_for.lua:3:13: error: `+` takes tiles and scalars, got a range; a range only goes into `for k in ...` [K0503]
]====]
