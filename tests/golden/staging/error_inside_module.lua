-- error inside module
local h = require"shapes" h.f(zeros(f32,4))
--[====[ expect
shapes.lua:2:10: error: shapes (4) and (5) of `+` do not fit: dim 0 is 4 and 5 [K0502]
  error_inside_module.lua:2:27: called from here
]====]
