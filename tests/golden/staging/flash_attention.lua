-- flash attention
  local n0 = i * c.BM
  local row = n0 + iota(0, c.BM)
  local q = a.Q:tile({n0, 0}, {c.BM, c.D})
  local m, l, o = full(f32, -inf, c.BM, 1), zeros(f32, c.BM, 1), zeros(f32, c.BM, c.D)
  for n in range(0, min(d.T, (i + 1) * c.BM + d.T - d.S), c.BN) do
    local col = n + iota(1, c.BN)
    local x = where(col < d.T and col <= row, dot(q, a.K:tile({n, 0}, {c.BN, c.D}):T()) * (a.scale * log2e), -inf)
    local mx = max(m, rowmax(x))
    local p, r = exp2(x - mx), exp2(m - mx)
    l, o, m = l * r + rowsum(p), o * r + dot(cast(p, bf16), a.V:tile({n, 0}, {c.BN, c.D})), mx
  end
  a.O:store({n0, 0}, cast(o / l, bf16))
-- args: tensor("Q", bf16, "S", "D"), tensor("K", bf16, "T", "D"), tensor("V", bf16, "T", "D"), scalar("scale", f32), out("O", bf16, "S", "D")
--[====[ expect
  body(%0 "Q": view bf16(?,128), %1 "K": view bf16(?,128), %2 "V": view bf16(?,128), %3 "scale": f32, %4 "O": view bf16(?,128), %5 "S": index, %6 "D": index, %7 "T": index, %8: index, %9: index) {
    %10 = const 64 : index
    %11 "n0" = mul %8, %10 : index
    %12 = iota {axis = 0} : index(64,1)
    %13 = splat %11 : index(64,1)
    %14 "row" = add %13, %12 : index(64,1)
    %15 = const 0 : index
    %16 "q" = load %0, %11, %15 : bf16(64,128)
    %17 = const -inf : f32
    %18 "m" = splat %17 : f32(64,1)
    %19 = const 0.0 : f32
    %20 "l" = splat %19 : f32(64,1)
    %21 = const 0.0 : f32
    %22 "o" = splat %21 : f32(64,128)
    %23 = const 1 : index
    %24 = add %8, %23 : index
    %25 = const 64 : index
    %26 = mul %24, %25 : index
    %27 = add %26, %7 : index
    %28 = sub %27, %5 : index
    %29 = min %7, %28 : index
    %30 = const 0 : index
    %31 = const 64 : index
    %32 "m", %33 "l", %34 "o" = for %35 "n": index = %30, %29, %31 carry(%36 "m": f32(64,1) = %18, %37 "l": f32(64,1) = %20, %38 "o": f32(64,128) = %22) : f32(64,1), f32(64,1), f32(64,128) {
      %39 = iota {axis = 1} : index(1,64)
      %40 = splat %35 : index(1,64)
      %41 "col" = add %40, %39 : index(1,64)
      %42 = splat %7 : index(1,64)
      %43 = lt %41, %42 : bool(1,64)
      %44 = broadcast %41 : index(64,64)
      %45 = broadcast %14 : index(64,64)
      %46 = le %44, %45 : bool(64,64)
      %47 = broadcast %43 : bool(64,64)
      %48 = and %47, %46 : bool(64,64)
      %49 = const 0 : index
      %50 = load %1, %35, %49 : bf16(64,128)
      %51 = transpose %50 {perm = [1,0]} : bf16(128,64)
      %52 = const 0.0 : f32
      %53 = splat %52 : f32(64,64)
      %54 = dot %16, %51, %53 : f32(64,64)
      %55 = const 1.4426950216293335 : f32
      %56 = mul %3, %55 : f32
      %57 = splat %56 : f32(64,64)
      %58 = mul %54, %57 : f32(64,64)
      %59 = const -inf : f32
      %60 = splat %59 : f32(64,64)
      %61 "x" = select %48, %58, %60 : f32(64,64)
      %62 = reduce_max %61 {axis = 1} : f32(64,1)
      %63 "mx" = max %36, %62 : f32(64,1)
      %64 = broadcast %63 : f32(64,64)
      %65 = sub %61, %64 : f32(64,64)
      %66 "p" = exp2 %65 : f32(64,64)
      %67 = sub %36, %63 : f32(64,1)
      %68 "r" = exp2 %67 : f32(64,1)
      %69 = mul %37, %68 : f32(64,1)
      %70 = reduce_sum %66 {axis = 1} : f32(64,1)
      %71 "l" = add %69, %70 : f32(64,1)
      %72 = broadcast %68 : f32(64,128)
      %73 = mul %38, %72 : f32(64,128)
      %74 = cast %66 : bf16(64,64)
      %75 = const 0 : index
      %76 = load %2, %35, %75 : bf16(64,128)
      %77 = const 0.0 : f32
      %78 = splat %77 : f32(64,128)
      %79 "o" = dot %74, %76, %73 : f32(64,128)
      yield %63, %71, %79
    }
    %80 = broadcast %33 : f32(64,128)
    %81 = div %34, %80 : f32(64,128)
    %82 = cast %81 : bf16(64,128)
    %83 = const 0 : index
    store %4, %11, %83, %82
    return
  }
}
]====]
