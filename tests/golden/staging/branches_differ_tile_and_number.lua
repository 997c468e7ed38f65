-- a number beside a tile cannot be merged; unread it is no error
local y, z = 0, 0
if i > 0 then
  y = zeros(f32, 4)
  z = zeros(f32, 4)
end
a.C:store({0}, y)
--[====[ expect
branches_differ_tile_and_number.lua:7:16: error: `y` is f32(4) in one branch and number 0 in the other (if at branches_differ_tile_and_number.lua:3:1) [K0303]
]====]
