return kernel {
  name = "k"
  args = {},
}
--[====[ expect
file_syntax.lua:3:3: error: '}' expected (to close '{' at line 1) near 'args' [K0101]
]====]
