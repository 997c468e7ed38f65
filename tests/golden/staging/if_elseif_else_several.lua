-- if/elseif/else several
local x,y,z = f0, zeros(f32,4,1), 5
  if i == 0 then x, y = 1, y + 1 elseif i == 1 then y = y * 2 z = 7 else x = 3 end
  a.C:store({x or 0, z}, y)
-- args: tensor("A", bf16, "K"), tensor("E", f32, "M", "N", "S", "T"), out("C", f32, "L", "P")
--[====[ expect
if_elseif_else_several.lua:4:14: error: `x` has a value only in one branch of the `if` at if_elseif_else_several.lua:3:34; assign it before the if or in both branches [K0303]
]====]
