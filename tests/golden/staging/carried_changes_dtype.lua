-- carried changes dtype
local s = zeros(f32,4) for k in range(0,d.K,32) do s = cast(s,bf16) end
--[====[ expect
carried_changes_dtype.lua:2:61: error: `s` is f32(4) at the start of the loop at carried_changes_dtype.lua:2:24 and bf16(4) at the end of an iteration (set at carried_changes_dtype.lua:2:56) [K0303]
]====]
