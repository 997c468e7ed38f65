-- an error while the file runs
local M = require "missing"
--[====[ expect
file_errors.lua:2:11: error: module 'missing' not found: no file 'missing.lua' in the kernel root [K0201]
]====]
