-- library: a refusal passes through pcall
print(pcall(math.floor, i)) print("not reached")
--[====[ expect
lib_pcall_refusal.lua:2:7: error: math.floor of index: integers are whole already, and there is no device function for floats [K0305]
]====]
