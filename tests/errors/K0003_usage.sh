kiln show K1001_wrong.lua --stage assembly
