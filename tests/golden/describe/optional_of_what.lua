return kernel { name = "k", args = { optional("A", f32, "M") } }
--[====[ expect
optional_of_what.lua:1:38: error: optional takes 1 argument, got 3: optional(declaration: arg): arg [K0503]
optional_of_what.lua:1:8: error: kernel `k` needs grid to be a function, got nil [K0401]
optional_of_what.lua:1:8: error: kernel `k` needs body to be a function, got nil [K0401]
]====]
