-- one branch only
local y if i > 0 then y = zeros(f32,4) end a.C:store({0}, y)
--[====[ expect
one_branch_only.lua:2:59: error: `y` has a value only in one branch of the `if` at one_branch_only.lua:2:9; assign it before the if or in both branches [K0303]
]====]
