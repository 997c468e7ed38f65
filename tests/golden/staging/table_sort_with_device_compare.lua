-- table.sort with device compare
local t={i,j,d.M} table.sort(t, function(x,y) return x < y end)
--[====[ expect
table_sort_with_device_compare.lua:2:19: error: table.sort: the comparison gave bool [K0305]
]====]
