-- tiles of integers beside an index stay what they are
local x = a.t:tile({0}, {4}) + i
local y = a.t:tile({0}, {4}):row() < iota(1, 4)
local z = where(iota(1, 4) < 2, i, a.x)
-- args: scalar("x", f32), tensor("t", s32, "M"), out("C", s32, "M")
--[====[ expect
scalars_index_refused.lua:2:30: error: `+` of s32(4) and index: two dtypes never mix; cast one of them [K0501]
scalars_index_refused.lua:3:36: error: `<` of s32(1,4) and index(1,4): two dtypes never mix; cast one of them [K0501]
scalars_index_refused.lua:4:11: error: where of index and f32: two dtypes never mix; cast one of them [K0501]
]====]
