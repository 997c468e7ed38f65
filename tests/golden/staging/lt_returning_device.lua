-- __lt returning device
local V={} V.__lt=function(p,q) return p.x<q.x end local u,v=setmetatable({x=i},V),setmetatable({x=j},V) local m = u < v print(type(m))
--[====[ expect
lt_returning_device.lua:2:118: error: __lt: the comparison gave bool [K0305]
]====]
