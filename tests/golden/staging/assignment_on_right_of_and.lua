-- pitfall 1: a counter behind a short circuit
local count = 0
local function add(x) count = count + 1 return x end
local m = i > 0 and add(j) > 2
--[====[ expect
assignment_on_right_of_and.lua:4:17: error: the right side of `and` has an effect (changes `count`), but its left side is a device value: both sides always run [K0304]
]====]
