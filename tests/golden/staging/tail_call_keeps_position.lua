-- tail call keeps position
local function f(x) return zeros(f32,5) + x end
 local function g(x)
   return f(x) end
 g(zeros(f32,4))
--[====[ expect
tail_call_keeps_position.lua:2:41: error: shapes (5) and (4) of `+` do not fit: dim 0 is 5 and 4 [K0502]
  tail_call_keeps_position.lua:4:11: called from here
  tail_call_keeps_position.lua:5:2: called from here
]====]
