-- carried from number to tile
local m = -inf for k in range(0,d.K,32) do m = max(m, zeros(f32,4)) end
--[====[ expect
carried_from_number_to_tile.lua:2:52: error: `m` is number -inf before the loop at carried_from_number_to_tile.lua:2:16 and f32(4) after an iteration (set at carried_from_number_to_tile.lua:2:48): start it with full(f32, ...) [K0303]
]====]
