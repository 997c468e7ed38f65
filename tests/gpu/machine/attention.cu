// Attention in double precision, one block of 128 threads for one query: what time_machine compares
// with. rows[b] = head * S + query. Dynamic shared memory: S floats.
__device__ float value(unsigned short bits) {
  return __uint_as_float((unsigned)bits << 16);
}

extern "C" __global__ void reference(const unsigned short *q, const unsigned short *k,
                                     const unsigned short *v, double *o, const int *rows, int S,
                                     int causal, float scale) {
  extern __shared__ float p[];
  __shared__ double part[128];
  const int t = threadIdx.x, row = rows[blockIdx.x], head = row / S, query = row % S;
  const unsigned short *mine = q + (long long)row * 128;
  const unsigned short *keys = k + (long long)head * S * 128, *values = v + (long long)head * S * 128;
  const int n = causal ? query + 1 : S;
  double most = -1e300;
  for (int j = t; j < n; j += 128) {
    double s = 0;
    for (int d = 0; d < 128; d++)
      s += (double)value(mine[d]) * value(keys[(long long)j * 128 + d]);
    p[j] = (float)(s * scale);
    most = most > p[j] ? most : p[j];
  }
  part[t] = most;
  __syncthreads();
  for (int i = 0; i < 128; i++)
    most = most > part[i] ? most : part[i];
  __syncthreads();
  double sum = 0;
  for (int j = t; j < n; j += 128) {
    p[j] = (float)exp((double)p[j] - most);
    sum += p[j];
  }
  part[t] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 128; i++)
    sum += part[i];
  double x = 0;
  for (int j = 0; j < n; j++)
    x += (double)p[j] * value(values[(long long)j * 128 + t]);
  o[(long long)blockIdx.x * 128 + t] = x / sum;
}
