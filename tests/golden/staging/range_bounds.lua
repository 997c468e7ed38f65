-- range bounds, step, number of values; soft errors, so all come at once
for k in range(0, f32(4)) do end
for k in range(0, zeros(index, 4)) do end
for k in range(0, 4.5) do end
for k in range("a", 4) do end
for k in range(0, d.K, 0) do end
for k in range(0, d.K, i) do end
for k in range(d.K) do end
for k in range(0, 8.0, 2.0) do end
--[====[ expect
range_bounds.lua:2:10: error: range bound is f32, not an integer scalar [K0503]
range_bounds.lua:3:10: error: range bound is index(4), not an integer scalar [K0503]
range_bounds.lua:4:10: error: range bound is number 4.5, not an integer scalar [K0503]
range_bounds.lua:5:10: error: range bound is a string, not an integer scalar [K0503]
range_bounds.lua:6:10: error: range step is 0; it must be an integer of at least 1 [K0503]
range_bounds.lua:7:10: error: range step is index, not a Lua number [K0305]
range_bounds.lua:8:10: error: range takes (lo, hi) or (lo, hi, step), got 1 value [K0503]
]====]
