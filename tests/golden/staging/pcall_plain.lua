-- pcall plain
local ok,e = pcall(function() error("boom") end) print(tostring(ok), e) local ok2,e2=pcall(function() local q=nil q.x=1 end) print(e2)
--[====[ expect
print: false	pcall_plain.lua:2:31: boom
print: pcall_plain.lua:2:115: attempt to index a nil value (local 'q')
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
