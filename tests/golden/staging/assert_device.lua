-- assert device
assert(i < 5) assert(3 < 5, "no")
--[====[ expect
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    %11 = const 5 : index
    %12 = lt %9, %11 : bool
    assert %12
    return
  }
}
]====]
