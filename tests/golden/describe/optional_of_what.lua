return kernel { name = "k", args = { optional("A", f32, "M") } }
--[====[ expect
optional_of_what.lua:1:38: error: optional takes a declaration, as optional(tensor("bias", bf16, "N")), got a string [K0401]
]====]
