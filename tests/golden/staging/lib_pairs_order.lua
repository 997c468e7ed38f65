-- library: pairs goes in sorted order
local t = {z = 1, [2] = 2, a = 3, [1] = 4, [true] = 5} local out = {} for k, v in pairs(t) do out[#out + 1] = tostring(k) .. "=" .. v end print(table.concat(out, " ")) a.C:store({0}, zeros(f32, 1))
--[====[ expect
print: 1=4 2=2 a=3 z=1 true=5
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 = splat %11 : f32(1)
    %13 = const 0 : index
    store %2, %13, %12
    return
  }
}
]====]
