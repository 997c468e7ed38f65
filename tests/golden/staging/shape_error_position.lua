-- shape error position
local x = zeros(f32,4,4) + 1 local y = (x + 2) *
     (x + zeros(f32,8,4))
--[====[ expect
shape_error_position.lua:3:9: error: shapes (4,4) and (8,4) of `+` do not fit: dim 0 is 4 and 8 [K0502]
]====]
