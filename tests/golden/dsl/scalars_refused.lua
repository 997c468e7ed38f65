-- scalars of two dtypes never mix either, but integers beside an index (scalars_index.lua)
local x = a.n + s64(2)
local y = a.s * a.h
local z = a.s + i
local ok = a.n + cast(i, s32) + s32(1)
-- args: scalar("n", s32), scalar("s", f32), scalar("h", f16), out("C", f32, "M")
--[====[ expect
scalars_refused.lua:2:15: error: `+` of s32 and s64: two dtypes never mix; cast one of them [K0501]
scalars_refused.lua:3:15: error: `*` of f32 and f16: two dtypes never mix; cast one of them [K0501]
scalars_refused.lua:4:15: error: `+` of f32 and index: two dtypes never mix; cast one of them [K0501]
]====]
