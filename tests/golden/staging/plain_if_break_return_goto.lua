-- plain if break/return/goto
for r=1,9 do if r==2 then goto cont end if r==5 then break end print(r) ::cont:: end
  local function f(x) for _,v in ipairs{3,4,5} do if v==x then return "hit"..v end end return "none" end print(f(4),f(9))
--[====[ expect
print: 1
print: 3
print: 4
print: hit4	none
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
