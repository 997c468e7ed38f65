-- library: text of device values
print(tostring(i), type(i), type(a.C), ("%s|%12s"):format(zeros(f32, 4), d.M), type(zeros(bf16, 4))) a.C:store({0}, zeros(f32, 1))
--[====[ expect
print: index	scalar	tensor	f32(4)|       index	tile
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 0.0 : f32
    %12 = splat %11 : f32(4)
    %13 = const 0.0 : bf16
    %14 = splat %13 : bf16(4)
    %15 = const 0.0 : f32
    %16 = splat %15 : f32(1)
    %17 = const 0 : index
    store %2, %17, %16
    return
  }
}
]====]
