-- assign const
local x <const> = 5 x = 6
--[====[ expect
assign_const.lua:2:21: error: attempt to assign to const variable 'x' [K0101]
]====]
