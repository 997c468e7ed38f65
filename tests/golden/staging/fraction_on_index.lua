-- fraction on index
local x = i + 0.5
--[====[ expect
fraction_on_index.lua:2:13: error: the fraction 0.5 cannot become index [K0501]
]====]
