-- error() position
local function chk(x) if x > 3 then
   error("too big") end end chk(4)
--[====[ expect
error_position.lua:3:4: error: too big [K0201]
  error_position.lua:3:29: called from here
]====]
