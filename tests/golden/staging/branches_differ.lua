-- one dtype in one branch, another in the other
local y = zeros(f32, 4)
if i > 0 then
  y = cast(y, bf16)
end
a.C:store({0}, y)
--[====[ expect
branches_differ.lua:6:16: error: `y` is bf16(4) in one branch and f32(4) in the other (if at branches_differ.lua:3:1) [K0303]
]====]
