-- runtime error position
local s = zeros(f32,4)
for k in range(0,d.K,32) do
  s = s + a.Zed:tile({0},{4})
end
--[====[ expect
runtime_error_position.lua:4:13: error: attempt to index a nil value (field 'Zed') [K0201]
]====]
