-- library: a list grows in one branch
local t = {1} if i > 0 then table.insert(t, 2) end a.C:store({#t}, zeros(f32, 1))
--[====[ expect
lib_insert_in_branch.lua:2:63: error: field '2' has a value only in one branch of the `if` at lib_insert_in_branch.lua:2:15; assign it before the if or in both branches [K0303]
]====]
