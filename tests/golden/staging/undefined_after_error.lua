-- one mistake, one message: what uses a refused value stays silent
local x = zeros(f32, 4) + zeros(f32, 5)
local y = exp(x) * 2 + rowsum(x)
a.C:store({0}, y)
local z = zeros(bf16, 4) + zeros(f32, 4)
for k in range(0, d.K) do
  z = z + x
end
--[====[ expect
undefined_after_error.lua:2:25: error: shapes (4) and (5) of `+` do not fit: dim 0 is 4 and 5 [K0502]
undefined_after_error.lua:5:26: error: `+` of bf16(4) and f32(4): two dtypes never mix; cast one of them [K0501]
]====]
