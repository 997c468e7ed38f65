-- library: a hopeless pattern ends at the step limit
("x"):rep(5000):find((".-"):rep(12) .. "y")
--[====[ expect
lib_long_pattern.lua:2:17: error: the kernel file ran for more than its limit of 100000000 steps (an endless loop?) [K0202]
]====]
