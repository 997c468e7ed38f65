-- pitfall 2: setmetatable in a device branch must not leak
local t = setmetatable({}, {__index = function() return 1 end})
if i > 0 then
  setmetatable(t, {__index = function() return 2 end})
end
print(t.x)
--[====[ expect
print: 1
setmetatable_in_branch.lua:4:3: error: the metatable of a table is changed in a branch of the device `if` at setmetatable_in_branch.lua:3:1: set it before the if [K0302]
]====]
