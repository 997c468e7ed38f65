// ldmatrix and stmatrix: 64 rows of 16 bytes, lane l points at row (7 l + 3) % 64; in memory the
// 16-bit element i is i. LOAD and STORE are the instructions of N registers.
__device__ __forceinline__ u32 row_address(const u16 *rows) {
  return shared_address(rows + (7 * threadIdx.x + 3) % 64 * 8);
}

// out[(lane N + register) 2 + e]: the element of memory that is there.
extern "C" __global__ void load(u32 *out) {
  __shared__ __align__(128) u16 rows[64 * 8];
  for (u32 i = threadIdx.x; i < 64 * 8; i += 32) rows[i] = (u16)i;
  __syncthreads();
  u32 r[N];
  const u32 address = row_address(rows);
  LOAD
  for (int i = 0; i < N; i++) {
    out[(threadIdx.x * N + i) * 2] = r[i] & 0xffff;
    out[(threadIdx.x * N + i) * 2 + 1] = r[i] >> 16;
  }
}

// out[i]: which (lane N + register) 2 + e was stored to element i of memory; 0xffff: none.
extern "C" __global__ void store(u32 *out) {
  __shared__ __align__(128) u16 rows[64 * 8];
  for (u32 i = threadIdx.x; i < 64 * 8; i += 32) rows[i] = 0xffff;
  __syncthreads();
  u32 r[N];
  for (int i = 0; i < N; i++) {
    const u32 s = (threadIdx.x * N + i) * 2;
    r[i] = s | (s + 1) << 16;
  }
  const u32 address = row_address(rows);
  STORE
  __syncthreads();
  for (u32 i = threadIdx.x; i < 64 * 8; i += 32) out[i] = rows[i];
}
