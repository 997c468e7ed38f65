-- nan key error
local t={} t[0/0]=1
--[====[ expect
nan_key_error.lua:2:13: error: table index is NaN [K0201]
]====]
