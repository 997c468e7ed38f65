-- string helpers
print(("x"):rep(3), ("%d-%s"):format(3,"a"), "a".."b"..1, #"abc", ("k=v"):match"(%w)=(%w)")
--[====[ expect
print: xxx	3-a	ab1	3	k	v
  body(%0 "A": view bf16(?), %1 "E": view f32(?,?,?,?), %2 "C": view f32(?), %3 "K": index, %4 "M": index, %5 "N": index, %6 "S": index, %7 "T": index, %8 "L": index, %9: index, %10: index) {
    return
  }
}
]====]
