/* Y = alpha * X + B through libkiln: on the CPU, verified, compiled, launched.
 *
 *   cc example.c -lkiln -o example */
#include <kiln.h>

#include <stdio.h>
#include <string.h>

static const char kernel[] =
    "return kernel {\n"
    "  name = 'axpy',\n"
    "  args = { tensor('X', f32, 'M', 'N'), optional(tensor('B', f32, 'N')),\n"
    "           scalar('alpha', f32), out('Y', f32, 'M', 'N') },\n"
    "  tune = { BM = {4, 8}, BN = {64, 128} },\n"
    "  grid = function(d, c) return cdiv(d.M, c.BM), cdiv(d.N, c.BN) end,\n"
    "  body = function(a, d, c, i, j)\n"
    "    local y = a.alpha * a.X:tile({i * c.BM, j * c.BN}, {c.BM, c.BN})\n"
    "    if a.B then y = y + a.B:tile({j * c.BN}, {c.BN}):row() end\n"
    "    a.Y:store({i * c.BM, j * c.BN}, y)\n"
    "  end,\n"
    "  oracle = function(t) return t.alpha * t.X + t.B:row() end,\n"
    "}\n";

/* A dense f32 tensor in CPU memory (device_type 1) or on a GPU (2). */
static struct kiln_tensor tensor_f32(void *data, int device_type, int rank, int64_t *shape) {
  return (struct kiln_tensor){.data = data,
                              .device_type = device_type,
                              .ndim = rank,
                              .dtype_code = 2, /* float */
                              .dtype_bits = 32,
                              .dtype_lanes = 1,
                              .shape = shape};
}

/* Every call returns a status; what there is to say about it is in the context's diagnostics. */
static int check(struct kiln_context *ctx, const char *what, enum kiln_status st) {
  for (uint32_t i = 0; i < kiln_diag_count(ctx); i++)
    fputs(kiln_diag_text(ctx, i), stderr);
  kiln_diag_clear(ctx);
  if (st != KILN_OK)
    fprintf(stderr, "%s: %s\n", what, kiln_status_name(st));
  return st == KILN_OK;
}

/* x, b and y lie in the memory of GPU 0, made by the program's own CUDA calls. A prepared launch is
 * cheap to repeat: nothing is allocated, hashed or looked up. */
static int launch(struct kiln_context *ctx, struct kiln_variant *v, void *x, void *b, void *y,
                  int64_t *shape, void *stream) {
  struct kiln_tensor X = tensor_f32(x, 2, 2, shape), B = tensor_f32(b, 2, 1, shape + 1);
  struct kiln_tensor Y = tensor_f32(y, 2, 2, shape);
  struct kiln_arg args[] = {{.tensor = &X}, {.tensor = &B}, {.number = 2}, {.tensor = &Y}};
  struct kiln_launch *l;
  enum kiln_status st = kiln_prepare(v, 0, args, 4, &l);
  for (int i = 0; i < 100 && st == KILN_OK; i++)
    st = kiln_launch(l, stream);
  kiln_launch_free(l); /* once the stream is done with it */
  return check(ctx, "launch", st);
}

int main(void) {
  struct kiln_context_options options = {.struct_size = sizeof options};
  struct kiln_context *ctx;
  struct kiln_file *file = NULL;
  struct kiln_variant *v = NULL;
  if (kiln_context_new(&options, &ctx) != KILN_OK)
    return 1;
  int ok =
      check(ctx, "load", kiln_file_load_text(ctx, "axpy.lua", kernel, strlen(kernel), NULL, &file));

  /* A variant: config, facts about the arguments and target are chosen. */
  const char *const set[] = {"BM=8"}, *const shapes[] = {"M=3", "N=100"};
  struct kiln_request request = {.struct_size = sizeof request,
                                 .case_index = -1,
                                 .target = "sm_90a",
                                 .n_set = 1,
                                 .set = set,
                                 .n_shapes = 2,
                                 .shapes = shapes};
  ok = ok && check(ctx, "specialise", kiln_specialise(file, &request, &v));

  /* What it computes, on the program's own memory. */
  float x[3][100], b[100], y[3][100];
  int64_t shape[] = {3, 100};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 100; j++)
      x[i][j] = (float)(10 * i + j), b[j] = 0.5f;
  struct kiln_tensor X = tensor_f32(x, 1, 2, shape), B = tensor_f32(b, 1, 1, shape + 1);
  struct kiln_tensor Y = tensor_f32(y, 1, 2, shape);
  struct kiln_arg args[] = {{.tensor = &X}, {.tensor = &B}, {.number = 2}, {.tensor = &Y}};
  ok = ok && check(ctx, "interpret", kiln_interpret(v, args, 4, false));
  if (ok)
    printf("Y[2][7] = %g\n", (double)y[2][7]);

  /* The whole case, made and judged by the library. */
  const struct kiln_report *report;
  ok = ok &&
       check(ctx, "run", kiln_run_case(file, &request, KILN_ON_INTERP, KILN_CASE_VERIFY, &report));
  if (ok)
    printf("%s: verified: %d\n", report->outputs[0].name, report->level == KILN_LEVEL_VERIFIED);

  /* The CUDA source, and a cubin where there is NVRTC. */
  const char *cuda;
  ok = ok && check(ctx, "show", kiln_show(v, "cuda", NULL, &cuda));
  if (ok)
    printf("%s for %s: %s\n", kiln_variant_kernel(v), kiln_variant_target(v),
           strstr(cuda, "__global__") ? "CUDA C" : "nothing");
  struct kiln_compile_info info;
  enum kiln_status compiled = ok ? kiln_compile(v, &info) : KILN_FAILED;
  if (ok && compiled != KILN_UNAVAILABLE)
    ok = check(ctx, "compile", compiled);
  kiln_diag_clear(ctx);

  /* With a GPU: launch(ctx, v, device_x, device_b, device_y, shape, stream). */
  (void)launch;

  kiln_variant_free(v);
  kiln_file_free(file);
  kiln_context_free(ctx);
  return ok ? 0 : 1;
}
