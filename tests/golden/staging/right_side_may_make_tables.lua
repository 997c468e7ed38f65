-- tables born on the right side belong to the region around
local function pair(x) local t = {x, x + 1} t[3] = 7 return t end
local t
local m = i > 0 and (function() t2 = nil return j > pair(j)[2] end)()
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0 : index
    %12 = gt %9, %11 : bool
    %13 = const 1 : index
    %14 = add %10, %13 : index
    %15 = gt %10, %14 : bool
    %16 "m" = and %12, %15 : bool
    return
  }
}
]====]
