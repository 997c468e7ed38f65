-- if on tile
local x=zeros(f32,4) if x > 0 then end
--[====[ expect
if_on_tile.lua:2:22: error: `if` on a tile bool(4); use where(cond, x, y) [K0301]
]====]
