-- library: setmetatable in a branch
local t = {} if i > 0 then setmetatable(t, {__index = {n = 4}}) end a.C:store({t.n or 9}, zeros(f32, 1))
--[====[ expect
lib_setmetatable_in_branch.lua:2:28: error: the metatable of a table is changed in a branch of the device `if` at lib_setmetatable_in_branch.lua:2:14: set it before the if [K0302]
]====]
