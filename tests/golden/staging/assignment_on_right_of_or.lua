-- the same with or, on a table field
local t = {n = 0}
local function add(x) t.n = t.n + 1 return x > 2 end
local m = i > 0 or add(j)
--[====[ expect
assignment_on_right_of_or.lua:4:17: error: the right side of `or` has an effect (changes field 'n'), but its left side is a device value: both sides always run [K0304]
]====]
