-- while on a tile
local x = zeros(f32, 4)
while x < 3 do
  x = x + 1
end
--[====[ expect
while_on_tile.lua:3:1: error: `while` on a tile bool(4); use where(cond, x, y) [K0301]
]====]
