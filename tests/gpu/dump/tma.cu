// Boxes of tensor maps: from global memory into shared memory, all of which is then copied out as it
// is; and the other way. COORDS is the list of RANK coordinates as operands of the instruction.
struct __align__(64) tensor_map {
  u64 words[16];
};
struct coords {
  int c[5];
};
enum { BYTES = 16384 }; // of shared memory that are dumped

// out[0]: 1 if the box came with `expect` bytes counted, else 0; out[1..]: shared memory, 0xee where
// nothing came. `offset`: of the box from a multiple of 1024.
extern "C" __global__ void load(u32 *out, const __grid_constant__ tensor_map map, coords at,
                                u32 offset, u32 expect) {
  __shared__ __align__(8) u64 barrier;
  u8 *memory = shared_memory();
  const u32 bar = shared_address(&barrier), to = shared_address(memory) + offset;
  for (u32 i = threadIdx.x; i < BYTES / 4; i += blockDim.x) ((u32 *)memory)[i] = 0xeeeeeeee;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(expect)
                 : "memory");
    LOAD
  }
  u32 done = 0;
  for (u32 i = 0; i < 2000 && !done; i++) { // 2 ms; without `done` the bytes may have come all the same
    __nanosleep(1000);
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; "
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(bar)
                 : "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) out[0] = done;
  for (u32 i = threadIdx.x; i < BYTES / 4; i += blockDim.x) out[1 + i] = ((u32 *)memory)[i];
}

// Shared memory holds `words`, from a multiple of 1024 on; a box at `offset` goes out.
extern "C" __global__ void store(const u32 *words, const __grid_constant__ tensor_map map, coords at,
                                 u32 offset) {
  u8 *memory = shared_memory();
  const u32 from = shared_address(memory) + offset;
  for (u32 i = threadIdx.x; i < BYTES / 4; i += blockDim.x) ((u32 *)memory)[i] = words[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    STORE
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
