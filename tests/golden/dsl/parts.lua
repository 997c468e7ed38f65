-- parts of tiles, tiles of parts, bits
local x = a.X:tile({0, 0, 0}, {2, 4, 8}, {pad = 0})
local p = x:permute(2, 0, 1):permute({1, 2, 0}):permute(0, 1, 2)
local s = p:slice({0, 1, 2}, {2, 2, 4}):slice({0, 0, 0}, {2, 2, 4})
local c = cat(0, s, s, s):slice({1, 0, 0}, {2, 2, 4})
c = c + cat(2, s:slice({0, 0, 0}, {2, 2, 1}), s:slice({0, 0, 1}, {2, 2, 3}))
local b = bitcast(bitcast(bitcast(c, s8), s4), f32) + bitcast(c, f32)
b = b + cast(bitcast(c, bf16), f32):slice({0, 0, 0}, {2, 2, 4}) * bitcast(bitcast(f32(1), s32), f32)
a.Y:store({0, 0, 0}, b)
print(c.shape[1], c.shape[2], c.shape[3], bitcast(c, s8).shape[3], bitcast(c, f64).shape[3])
-- args: tensor("X", f32, "M", "N", "K"), out("Y", f32, "M", "N", "K")
--[====[ expect
print: 2	2	4	16	2
  body(%0 "X": view f32(?,?,?), %1 "Y": view f32(?,?,?), %2 "M": index, %3 "N": index, %4 "K": index, %5: index, %6: index) {
    %7 = const 0 : index
    %8 = const 0 : index
    %9 = const 0 : index
    %10 "x" = load %0, %7, %8, %9 : f32(2,4,8)
    %11 = transpose %10 {perm = [2,0,1]} : f32(8,2,4)
    %12 "p" = transpose %11 {perm = [1,2,0]} : f32(2,4,8)
    %13 "s" = extract %12 {offsets = [0,1,2]} : f32(2,2,4)
    %14 = concat %13, %13, %13 {axis = 0} : f32(6,2,4)
    %15 "c" = extract %14 {offsets = [1,0,0]} : f32(2,2,4)
    %16 = extract %13 {offsets = [0,0,0]} : f32(2,2,1)
    %17 = extract %13 {offsets = [0,0,1]} : f32(2,2,3)
    %18 = concat %16, %17 {axis = 2} : f32(2,2,4)
    %19 "c" = add %15, %18 : f32(2,2,4)
    %20 = bitcast %19 : s8(2,2,16)
    %21 = bitcast %20 : s4(2,2,32)
    %22 = bitcast %21 : f32(2,2,4)
    %23 "b" = add %22, %19 : f32(2,2,4)
    %24 = bitcast %19 : bf16(2,2,8)
    %25 = cast %24 : f32(2,2,8)
    %26 = extract %25 {offsets = [0,0,0]} : f32(2,2,4)
    %27 = const 1.0 : f32
    %28 = bitcast %27 : s32
    %29 = bitcast %28 : f32
    %30 = splat %29 : f32(2,2,4)
    %31 = mul %26, %30 : f32(2,2,4)
    %32 "b" = add %23, %31 : f32(2,2,4)
    %33 = const 0 : index
    %34 = const 0 : index
    %35 = const 0 : index
    store %1, %33, %34, %35, %32
    %36 = bitcast %19 : s8(2,2,16)
    %37 = bitcast %19 : f64(2,2,2)
    return
  }
}
]====]
