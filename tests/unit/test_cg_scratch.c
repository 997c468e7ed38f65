/* Scratch memory on the GPU's way: one workspace of the launch, each tensor behind the other, zeros
 * where asked for; accesses as wide as its known layout allows. */
#include "help_cg.h"

#include <cmocka.h>
#include <string.h>

/* Y = X + X by way of W, of whose elements each program writes and reads its own; Z counts. */
static const char text[] =
    "kiln-ir 1 tile\nkernel k {\n  arg X: in f32 [M, N]\n  arg V: scratch bf16 [M + 1, 3]\n"
    "  arg W: scratch f32 [M, N]\n  arg C: zero scratch s32 [M]\n  arg Y: out f32 [M, N]\n"
    "  arg Z: out s32 [M]\n  dims M, N\n  grid cdiv(M, 8)\n"
    "  body(%0: view f32(?,?), %1: view bf16(?,3), %2: view f32(?,?), %3: view s32(?), "
    "%4: view f32(?,?), %5: view s32(?), %6: index, %7: index, %8: index) {\n"
    "    %9 = const 8 : index\n    %10 = mul %8, %9 : index\n    %11 = const 0 : index\n"
    "    %12 = load %0, %10, %11 : f32(8,32)\n    store %2, %10, %11, %12\n"
    "    %13 = view_transpose %2 {perm = [1,0]} : view f32(?,?)\n"
    "    %14 = load %13, %11, %10 : f32(32,8)\n    %15 = transpose %14 {perm = [1,0]} : f32(8,32)\n"
    "    %16 = add %12, %15 : f32(8,32)\n    store %4, %10, %11, %16\n"
    "    %17 = load %3, %10 : s32(8)\n    %18 = const 1 : s32\n    %19 = splat %18 : s32(8)\n"
    "    %20 = add %17, %19 : s32(8)\n    store %3, %10, %20\n    %21 = load %3, %10 : s32(8)\n"
    "    store %5, %10, %21\n    return\n  }\n}\n";

static void through_scratch(void **state) {
  (void)state;
  static const char *const dims[] = {"M=8,N=32", "M=13,N=7", "M=64,N=33", "M=1,N=1", "M=0,N=5"};
  for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
    cg_check(text, dims[i], i % 2 ? "X=pad1" : "", i % 2 ? "threads=64" : "", 0);
}

static void recipe(void **state) {
  (void)state;
  struct cg_test t;
  cg_test_begin(&t, text);
  cg_test_args(&t, "M=16,N=32", "", 0, 1);
  assert_true(cg_test_lower(&t, "sm_90a", ""));
  struct strbuf b = {.arena = &t.mem.arena};
  recipe_print(t.machine->recipe, &b);
  static const char *const want[] = {
      "arg in \"X\" f32 [M, N]\narg out \"Y\"", /* the caller passes no scratch */
      "check 0 <= M + 1 : \"dim 0 of scratch `V` is negative\"",
      "workspace cdiv(3 * ((M + 1) * 16), 2048) * 256 + cdiv(N * (M * 32), 2048) * 256 + "
      "cdiv(M * 32, 2048) * 256",
      "memset cdiv(3 * ((M + 1) * 16), 2048) * 256 + cdiv(N * (M * 32), 2048) * 256, "
      "cdiv(M * 32, 2048) * 256",
      "param ptr 0\n",
      "param workspace 0\n",
      "param workspace cdiv(3 * ((M + 1) * 16), 2048) * 256\n",
  };
  const char *at = sb_str(&b);
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
    if (!strstr(at, want[i]))
      fail_msg("no `%s` in\n%s", want[i], at);
  struct strbuf c = {.arena = &t.mem.arena};
  cg_emit(t.machine, (struct cg_emit_options){0}, &c);
  assert_non_null(strstr(sb_str(&c), "*__restrict__ n1 /* workspace + 0 */"));
  cg_test_end(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(through_scratch), cmocka_unit_test(recipe)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
