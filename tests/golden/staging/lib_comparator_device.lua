-- library: a comparator that gives a mask
table.sort({1, 2, 3}, function(x, y) return i < x end)
--[====[ expect
lib_comparator_device.lua:2:1: error: table.sort: the comparison gave bool [K0305]
]====]
