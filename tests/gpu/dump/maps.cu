// The kernels over one matrix instruction: who meets whom, and how far sums are exact.
__device__ __forceinline__ void run(DREG *d, const fill &fa, const fill &fb, const setup &p) {
#pragma unroll
  for (int i = 0; i < D_REGS; i++) d[i] = 0;
  accumulate(d, fa, fb, p);
}

// Is an element of D not 0 in any thread?
__device__ __forceinline__ bool any(const DREG *d) {
  bool x = false;
#pragma unroll
  for (int e = 0; e < D_ELEMENTS; e++) x |= D_VALUE(d[e / D_PACK], e % D_PACK) != 0;
  return __syncthreads_or(x);
}

__device__ __forceinline__ void add_digit(u32 *code, const DREG *d, int digit) {
#pragma unroll
  for (int e = 0; e < D_ELEMENTS; e++)
    code[e] |= (u32)D_VALUE(d[e / D_PACK], e % D_PACK) << 3 * digit;
}

#if KERNELS & 1
// out[x]: for element x of A (of_b: of B) the lowest element of D that it reaches << 16 | the number
// of the element of the other operand that it meets there; NONE if it reaches none.
extern "C" __global__ void __launch_bounds__(THREADS) reach(u32 *out, int of_b, setup p) {
  __shared__ u32 best;
  const fill hot = {blockIdx.x, 0, -1, 0}, all = {NONE, 0, -1, 0};
  DREG d[D_REGS];
  u32 code[D_ELEMENTS];
  u32 there = NONE; // this thread's lowest element that is not 0
  if (threadIdx.x == 0) best = NONE;
  run(d, of_b ? all : hot, of_b ? hot : all, p);
#pragma unroll
  for (int e = D_ELEMENTS - 1; e >= 0; e--) {
    if (D_VALUE(d[e / D_PACK], e % D_PACK) != 0) there = e;
    code[e] = 0;
  }
  if (any(d)) {
#pragma unroll 1
    for (int i = 0; i < DIGITS; i++) {
      const fill digit = {NONE, 0, i, 0};
      run(d, of_b ? digit : hot, of_b ? hot : digit, p);
      add_digit(code, d, i);
    }
#pragma unroll
    for (int e = 0; e < D_ELEMENTS; e++)
      if (e == there) atomicMin(&best, (threadIdx.x * D_ELEMENTS + e) << 16 | code[e]);
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = best;
}

#endif

#if KERNELS & 2
// out[2 s], out[2 s + 1]: the numbers of the elements of A and B that meet in element s of D, among
// those with the k of A's element `first`.
extern "C" __global__ void __launch_bounds__(THREADS) meet(u32 *out, u32 first, setup p) {
  __shared__ u32 in_a[512], in_b[512];
  for (u32 i = threadIdx.x; i < 512; i += THREADS) in_a[i] = in_b[i] = 0;
  __syncthreads();
  const fill one = {first, 0, -1, 0}, sa = {NONE, in_a, -1, 0}, sb = {NONE, in_b, -1, 0};
  DREG d[D_REGS];
#pragma unroll 1
  for (u32 s = 0; s < p.count_b; s++) {
    const fill hot = {s, 0, -1, 0};
    run(d, one, hot, p);
    const bool yes = any(d);
    if (threadIdx.x == 0 && yes) in_b[s >> 5] |= 1u << (s & 31);
    __syncthreads();
  }
#pragma unroll 1
  for (u32 s = 0; s < p.count_a; s++) {
    const fill hot = {s, 0, -1, 0};
    run(d, hot, sb, p);
    const bool yes = any(d);
    if (threadIdx.x == 0 && yes) in_a[s >> 5] |= 1u << (s & 31);
    __syncthreads();
  }
#pragma unroll 1
  for (int of_b = 0; of_b < 2; of_b++) {
    run(d, sa, sb, p);
    u32 *to = out + 2 * threadIdx.x * D_ELEMENTS + of_b;
#pragma unroll
    for (int e = 0; e < D_ELEMENTS; e++)
      to[2 * e] = D_VALUE(d[e / D_PACK], e % D_PACK) != 0 ? 0 : NONE;
#pragma unroll 1
    for (int i = 0; i < DIGITS; i++) {
      const fill da = {NONE, in_a, i, 0}, db = {NONE, in_b, i, 0};
      run(d, of_b ? sa : da, of_b ? db : sb, p);
#pragma unroll
      for (int e = 0; e < D_ELEMENTS; e++)
        to[2 * e] |= (u32)D_VALUE(d[e / D_PACK], e % D_PACK) << 3 * i;
    }
  }
}

#endif

#if KERNELS & 4
// Block e: out[4 e]: of 32 trials over all elements, those where C + A . B is not the integer that it
// should be, C random in 2^e .. 2^(e+1), A and B random 0..7 (A . B alone is taken as exact: it is
// below 2^11). out[4 e + 1]: (2^e + 1 * 1) - 2^e. out[4 e + 2]: (2^e + 3 * 1) - 2^e, in units of 1 /
// 16, each by one product.
extern "C" __global__ void __launch_bounds__(THREADS) sums(u32 *out, setup p) {
  const u32 e = blockIdx.x;
  DREG d[D_REGS];
  int product[D_REGS];
  u32 wrong = 0;
#pragma unroll 1
  for (u32 trial = 0; trial < 32; trial++) {
    const fill fa = {NONE, 0, -1, 1 + 77777 * trial + 3333333 * e},
               fb = {NONE, 0, -1, 99 + 55555 * trial + 7777777 * e};
    run(d, fa, fb, p);
#pragma unroll
    for (int i = 0; i < D_REGS; i++) {
      product[i] = (int)d[i];
      d[i] = (DREG)(int)((1u << e) + (hash(trial * 4096 + threadIdx.x * 128 + i) & ((1u << e) - 1)));
    }
    accumulate(d, fa, fb, p);
#pragma unroll
    for (int i = 0; i < D_REGS; i++) {
      const int c = (int)((1u << e) + (hash(trial * 4096 + threadIdx.x * 128 + i) & ((1u << e) - 1)));
      wrong += (int)d[i] != c + product[i] || product[i] < 0;
    }
  }
  atomicAdd(&out[4 * e], wrong);
  // One product: A's element `hot` alone, B all ones.
#pragma unroll 1
  for (u32 v = 0; v < 2; v++) {
    const fill one = {0, 0, v ? 0 : -1, 0}, all = {NONE, 0, -1, 0};
    const fill three = {3, 0, 0, 0}; // element 3: its lowest digit is 3
#pragma unroll
    for (int i = 0; i < D_REGS; i++) d[i] = (DREG)(int)(1u << e);
    accumulate(d, v ? three : one, all, p);
    u32 more = 0;
#pragma unroll
    for (int i = 0; i < D_REGS; i++) more = max(more, (u32)(int)(16 * (d[i] - (DREG)(int)(1u << e))));
    atomicMax(&out[4 * e + 1 + v], more);
  }
}
#endif

#if KERNELS & 8
// out[0]: bits of the largest element of D for x * x in one product, x what ENCODE says 1 is.
extern "C" __global__ void __launch_bounds__(THREADS) product(u32 *out, setup p) {
  const fill one = {0, 0, -1, 0}, all = {NONE, 0, -1, 0};
  DREG d[D_REGS];
  run(d, one, all, p);
#pragma unroll
  for (int i = 0; i < D_REGS; i++) atomicMax(out, __float_as_uint(d[i]));
}
#endif
