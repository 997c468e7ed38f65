-- syntax error
local x = = 3
--[====[ expect
syntax_error.lua:2:11: error: unexpected symbol near '=' [K0101]
]====]
