-- device key in constructor
local t={[i]=2}
--[====[ expect
device_key_in_constructor.lua:2:10: error: a Lua table cannot be indexed by index; use a plain loop or where [K0305]
]====]
