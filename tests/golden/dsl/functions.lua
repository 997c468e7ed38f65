-- every function once
local x, y = a.X:tile({0, 0}, {4, 8}, {pad = 0}), zeros(f32, 4, 8)
local z = exp(x) + exp2(x) + log(x) + log2(x) + sqrt(x) + rsqrt(x) + tanh(x) + erf(x) + sigmoid(x)
z = z + sin(x) + cos(x) + abs(x) + relu(x) + silu(x) + gelu(x) + gelu_tanh(x)
z = z * min(x, y, 2) / max(1, 2, x) - -x
z = where(z > 0 and z <= y or not (x ~= z), z, 0.5)
z = z + rowsum(z) + rowmax(z) + rowmin(z) + colsum(z) + colmax(z) + colmin(z)
z = z + sum(z, 0) + amax(z, 1) + amin(z, 0) + sum(z) + max(z) + min(z) + amax(z) + amin(z)
z = z + full(f32, sum(z), 4, 8) + zeros(f32, {4, 8})
z = z + cast(iota(0, 4) * 8 + iota(1, 8), f32) + inf + log2e + pi
a.Y:store({i, j * 2}, z:T():T():reshape(8, 4):reshape({4, 8}))
a.C:store({cdiv(i, 3) + cdiv(7, 2) + min(i, 3)}, zeros(f32, 2):row():reshape(2))
print(min(3, 1, 2), max(1, 2.5), abs(-3), cdiv(7, 2), relu(-1), exp(0), where(true, 1, 2), f32)
print(z.dtype, z.shape[1], z.shape[2], lt(1, 2), ge(1, 2))
-- args: tensor("X", f32, "M", "N"), out("Y", f32, "M", "N"), out("C", f32, "L")
--[====[ expect
print: 1	2.5	3	4	0.0	1.0	1	f32
print: f32	4	8	true	false
  body(%0 "X": view f32(?,?), %1 "Y": view f32(?,?), %2 "C": view f32(?), %3 "M": index, %4 "N": index, %5 "L": index, %6: index, %7: index) {
    %8 = const 0 : index
    %9 = const 0 : index
    %10 "x" = load %0, %8, %9 : f32(4,8)
    %11 = const 0.0 : f32
    %12 "y" = splat %11 : f32(4,8)
    %13 = exp %10 : f32(4,8)
    %14 = exp2 %10 : f32(4,8)
    %15 = add %13, %14 : f32(4,8)
    %16 = log %10 : f32(4,8)
    %17 = add %15, %16 : f32(4,8)
    %18 = log2 %10 : f32(4,8)
    %19 = add %17, %18 : f32(4,8)
    %20 = sqrt %10 : f32(4,8)
    %21 = add %19, %20 : f32(4,8)
    %22 = rsqrt %10 : f32(4,8)
    %23 = add %21, %22 : f32(4,8)
    %24 = tanh %10 : f32(4,8)
    %25 = add %23, %24 : f32(4,8)
    %26 = erf %10 : f32(4,8)
    %27 = add %25, %26 : f32(4,8)
    %28 = sigmoid %10 : f32(4,8)
    %29 "z" = add %27, %28 : f32(4,8)
    %30 = sin %10 : f32(4,8)
    %31 = add %29, %30 : f32(4,8)
    %32 = cos %10 : f32(4,8)
    %33 = add %31, %32 : f32(4,8)
    %34 = abs %10 : f32(4,8)
    %35 = add %33, %34 : f32(4,8)
    %36 = const 0.0 : f32
    %37 = splat %36 : f32(4,8)
    %38 = max %10, %37 : f32(4,8)
    %39 = add %35, %38 : f32(4,8)
    %40 = sigmoid %10 : f32(4,8)
    %41 = mul %10, %40 : f32(4,8)
    %42 = add %39, %41 : f32(4,8)
    %43 = const 0.7071067690849304 : f32
    %44 = splat %43 : f32(4,8)
    %45 = mul %10, %44 : f32(4,8)
    %46 = erf %45 : f32(4,8)
    %47 = const 1.0 : f32
    %48 = splat %47 : f32(4,8)
    %49 = add %46, %48 : f32(4,8)
    %50 = const 0.5 : f32
    %51 = splat %50 : f32(4,8)
    %52 = mul %10, %51 : f32(4,8)
    %53 = mul %52, %49 : f32(4,8)
    %54 = add %42, %53 : f32(4,8)
    %55 = mul %10, %10 : f32(4,8)
    %56 = const 0.044714998453855515 : f32
    %57 = splat %56 : f32(4,8)
    %58 = mul %55, %57 : f32(4,8)
    %59 = const 1.0 : f32
    %60 = splat %59 : f32(4,8)
    %61 = add %58, %60 : f32(4,8)
    %62 = const 0.7978845834732056 : f32
    %63 = splat %62 : f32(4,8)
    %64 = mul %10, %63 : f32(4,8)
    %65 = mul %64, %61 : f32(4,8)
    %66 = tanh %65 : f32(4,8)
    %67 = const 1.0 : f32
    %68 = splat %67 : f32(4,8)
    %69 = add %66, %68 : f32(4,8)
    %70 = const 0.5 : f32
    %71 = splat %70 : f32(4,8)
    %72 = mul %10, %71 : f32(4,8)
    %73 = mul %72, %69 : f32(4,8)
    %74 "z" = add %54, %73 : f32(4,8)
    %75 = min %10, %12 : f32(4,8)
    %76 = const 2.0 : f32
    %77 = splat %76 : f32(4,8)
    %78 = min %75, %77 : f32(4,8)
    %79 = mul %74, %78 : f32(4,8)
    %80 = const 2.0 : f32
    %81 = splat %80 : f32(4,8)
    %82 = max %81, %10 : f32(4,8)
    %83 = div %79, %82 : f32(4,8)
    %84 = neg %10 : f32(4,8)
    %85 "z" = sub %83, %84 : f32(4,8)
    %86 = const 0.0 : f32
    %87 = splat %86 : f32(4,8)
    %88 = gt %85, %87 : bool(4,8)
    %89 = le %85, %12 : bool(4,8)
    %90 = and %88, %89 : bool(4,8)
    %91 = ne %10, %85 : bool(4,8)
    %92 = not %91 : bool(4,8)
    %93 = or %90, %92 : bool(4,8)
    %94 = const 0.5 : f32
    %95 = splat %94 : f32(4,8)
    %96 "z" = select %93, %85, %95 : f32(4,8)
    %97 = reduce_sum %96 {axis = 1} : f32(4,1)
    %98 = broadcast %97 : f32(4,8)
    %99 = add %96, %98 : f32(4,8)
    %100 = reduce_max %96 {axis = 1} : f32(4,1)
    %101 = broadcast %100 : f32(4,8)
    %102 = add %99, %101 : f32(4,8)
    %103 = reduce_min %96 {axis = 1} : f32(4,1)
    %104 = broadcast %103 : f32(4,8)
    %105 = add %102, %104 : f32(4,8)
    %106 = reduce_sum %96 {axis = 0} : f32(1,8)
    %107 = broadcast %106 : f32(4,8)
    %108 = add %105, %107 : f32(4,8)
    %109 = reduce_max %96 {axis = 0} : f32(1,8)
    %110 = broadcast %109 : f32(4,8)
    %111 = add %108, %110 : f32(4,8)
    %112 = reduce_min %96 {axis = 0} : f32(1,8)
    %113 = broadcast %112 : f32(4,8)
    %114 "z" = add %111, %113 : f32(4,8)
    %115 = reduce_sum %114 {axis = 0} : f32(1,8)
    %116 = broadcast %115 : f32(4,8)
    %117 = add %114, %116 : f32(4,8)
    %118 = reduce_max %114 {axis = 1} : f32(4,1)
    %119 = broadcast %118 : f32(4,8)
    %120 = add %117, %119 : f32(4,8)
    %121 = reduce_min %114 {axis = 0} : f32(1,8)
    %122 = broadcast %121 : f32(4,8)
    %123 = add %120, %122 : f32(4,8)
    %124 = reduce_sum %114 {axis = 1} : f32(4,1)
    %125 = reduce_sum %124 {axis = 0} : f32(1,1)
    %126 = item %125 : f32
    %127 = splat %126 : f32(4,8)
    %128 = add %123, %127 : f32(4,8)
    %129 = reduce_max %114 {axis = 1} : f32(4,1)
    %130 = reduce_max %129 {axis = 0} : f32(1,1)
    %131 = item %130 : f32
    %132 = splat %131 : f32(4,8)
    %133 = add %128, %132 : f32(4,8)
    %134 = reduce_min %114 {axis = 1} : f32(4,1)
    %135 = reduce_min %134 {axis = 0} : f32(1,1)
    %136 = item %135 : f32
    %137 = splat %136 : f32(4,8)
    %138 = add %133, %137 : f32(4,8)
    %139 = reduce_max %114 {axis = 1} : f32(4,1)
    %140 = reduce_max %139 {axis = 0} : f32(1,1)
    %141 = item %140 : f32
    %142 = splat %141 : f32(4,8)
    %143 = add %138, %142 : f32(4,8)
    %144 = reduce_min %114 {axis = 1} : f32(4,1)
    %145 = reduce_min %144 {axis = 0} : f32(1,1)
    %146 = item %145 : f32
    %147 = splat %146 : f32(4,8)
    %148 "z" = add %143, %147 : f32(4,8)
    %149 = reduce_sum %148 {axis = 1} : f32(4,1)
    %150 = reduce_sum %149 {axis = 0} : f32(1,1)
    %151 = item %150 : f32
    %152 = splat %151 : f32(4,8)
    %153 = add %148, %152 : f32(4,8)
    %154 = const 0.0 : f32
    %155 = splat %154 : f32(4,8)
    %156 "z" = add %153, %155 : f32(4,8)
    %157 = iota {axis = 0} : index(4,1)
    %158 = const 8 : index
    %159 = splat %158 : index(4,1)
    %160 = mul %157, %159 : index(4,1)
    %161 = iota {axis = 1} : index(1,8)
    %162 = broadcast %160 : index(4,8)
    %163 = broadcast %161 : index(4,8)
    %164 = add %162, %163 : index(4,8)
    %165 = cast %164 : f32(4,8)
    %166 = add %156, %165 : f32(4,8)
    %167 = const inf : f32
    %168 = splat %167 : f32(4,8)
    %169 = add %166, %168 : f32(4,8)
    %170 = const 1.4426950216293335 : f32
    %171 = splat %170 : f32(4,8)
    %172 = add %169, %171 : f32(4,8)
    %173 = const 3.1415927410125732 : f32
    %174 = splat %173 : f32(4,8)
    %175 "z" = add %172, %174 : f32(4,8)
    %176 = const 2 : index
    %177 = mul %7, %176 : index
    %178 = transpose %175 {perm = [1,0]} : f32(8,4)
    %179 = transpose %178 {perm = [1,0]} : f32(4,8)
    %180 = reshape %179 : f32(8,4)
    %181 = reshape %180 : f32(4,8)
    store %1, %6, %177, %181
    %182 = neg %6 : index
    %183 = const 3 : index
    %184 = floordiv %182, %183 : index
    %185 = neg %184 : index
    %186 = const 4 : index
    %187 = add %185, %186 : index
    %188 = const 3 : index
    %189 = min %6, %188 : index
    %190 = add %187, %189 : index
    %191 = const 0.0 : f32
    %192 = splat %191 : f32(2)
    %193 = reshape %192 : f32(1,2)
    %194 = reshape %193 : f32(2)
    store %2, %190, %194
    return
  }
}
]====]
