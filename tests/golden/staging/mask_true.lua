-- mask == true
local m = (i == 3) == true
--[====[ expect
mask_true.lua:2:20: error: comparing bool with true: use the mask itself or `not` [K0305]
]====]
