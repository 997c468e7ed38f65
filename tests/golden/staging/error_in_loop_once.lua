-- a body is traced several times; a mistake in it is reported once
local s = zeros(f32, 4)
for k in range(0, d.K) do
  s = s + zeros(f32, 8)
end
for k in range(0, d.K) do
  s = s + dot(s, s)
end
--[====[ expect
error_in_loop_once.lua:4:9: error: shapes (4) and (8) of `+` do not fit: dim 0 is 4 and 8 [K0502]
]====]
