/* Kernels as people write them, traced from Lua, lowered, run on the host against the interpreter:
 * what generated gemms do not reach. Computed dot operands, several dots in a loop, layouts that
 * must be converted, carried tiles that change places, branches, loops on conditions, accesses of
 * rank 3, tensors that are stored to and read again. */
#include "help_cg.h"
#include "help_fe.h"

#include <cmocka.h>
#include <string.h>

struct kernel {
  const char *name, *text, *dims, *layout;
  double tolerance;
};

static const struct kernel kernels[] = {
    {"attention",
     "return kernel { name = 'attention',\n"
     "  args = { tensor('Q', bf16, 'S', 32), tensor('K', bf16, 'T', 32), tensor('V', bf16, 'T', 32),\n"
     "           scalar('scale', f32), out('O', bf16, 'S', 32) },\n"
     "  grid = function(d) return cdiv(d.S, 32) end,\n"
     "  body = function(a, d, c, i)\n"
     "    local n0 = i * 32\n"
     "    local row = n0 + iota(0, 32) + d.T - d.S\n"
     "    local q = a.Q:tile({n0, 0}, {32, 32})\n"
     "    local m, l, o = full(f32, -1e30, 32, 1), zeros(f32, 32, 1), zeros(f32, 32, 32)\n"
     "    for n in range(0, d.T, 32) do\n"
     "      local col = n + iota(1, 32)\n"
     "      local s = dot(q, a.K:tile({n, 0}, {32, 32}):T()) * a.scale\n"
     "      local x = where(col < d.T and col <= row, s, -1e30)\n"
     "      local mx = max(m, rowmax(x))\n"
     "      local p, r = exp2(x - mx), exp2(m - mx)\n"
     "      l, o, m = l * r + rowsum(p), o * r + dot(cast(p, bf16), a.V:tile({n, 0}, {32, 32})), mx\n"
     "    end\n"
     "    a.O:store({n0, 0}, cast(o / l, bf16))\n"
     "  end }\n",
     "S=70,T=70", "", 2e-2},
    {"chained dots, transposed",
     "return kernel { name = 'chain',\n"
     "  args = { tensor('A', bf16, 'M', 'K'), tensor('B', bf16, 'K', 'N'), out('C', f32, 'N', 'N') },\n"
     "  grid = function(d) return 1 end,\n"
     "  body = function(a, d, c, i)\n"
     "    local x = dot(a.A:tile({0, 0}, {24, 40}), a.B:tile({0, 0}, {40, 16}))\n"
     "    local y = cast(x, bf16)\n"
     "    a.C:store({0, 0}, dot(y:T(), y))\n"
     "  end }\n",
     "M=20,K=33,N=16", "A=col", 0},
    {"f32 chain",
     "return kernel { name = 'chain32',\n"
     "  args = { tensor('A', f32, 'M', 'K'), tensor('B', f32, 'K', 'N'), out('C', f32, 'M', 'K') },\n"
     "  grid = function(d) return 1 end,\n"
     "  body = function(a, d, c, i)\n"
     "    local b = a.B:tile({0, 0}, {20, 12})\n"
     "    local x = dot(a.A:tile({0, 0}, {24, 20}), b) + 1\n"
     "    a.C:store({0, 0}, dot(x, b:T()))\n"
     "  end }\n",
     "M=20,K=18,N=11", "B=col", 0},
    {"column sums beside row sums",
     "return kernel { name = 'sums',\n"
     "  args = { tensor('X', f32, 'M', 'N'), out('R', f32, 'M', 1), out('C', f32, 1, 'N'),\n"
     "           out('Y', f32, 'M', 'N') },\n"
     "  grid = function(d) return 1 end,\n"
     "  body = function(a, d, c, i)\n"
     "    local x = a.X:tile({0, 0}, {16, 72})\n"
     "    local r, s = rowsum(x), sum(x, 0)\n"
     "    a.R:store({0, 0}, r)\n"
     "    a.C:store({0, 0}, s)\n"
     "    a.Y:store({0, 0}, x * 2 + r - s + max(x, 1))\n"
     "  end }\n",
     "M=13,N=70", "", 0},
    {"tiles that change places",
     "return kernel { name = 'swap',\n"
     "  args = { tensor('X', s32, 'M', 8), out('Y', s32, 'M', 8), out('Z', s32, 8, 'M') },\n"
     "  grid = function(d) return 1 end,\n"
     "  body = function(a, d, c, i)\n"
     "    local x, y, n = a.X:tile({0, 0}, {8, 8}), full(s32, 1, 8, 8), 0\n"
     "    for k in range(0, d.M) do\n"
     "      x, y = y, x + y * 2\n"
     "      if k > 2 then x = x - 1 n = n + 3 else y = y + x:T() end\n"
     "    end\n"
     "    while n < 30 do n = n + 7 x = x + cast(n, s32) end\n"
     "    a.Y:store({0, 0}, x + cast(n, s32))\n"
     "    a.Z:store({0, 0}, y:T())\n"
     "  end }\n",
     "M=8", "", 0},
    {"read what was stored",
     "return kernel { name = 'again',\n"
     "  args = { tensor('X', f32, 'M', 'N'), inout('Y', f32, 'M', 'N'), out('Z', f32, 'N', 'M') },\n"
     "  grid = function(d) return 1 end,\n"
     "  body = function(a, d, c, i)\n"
     "    local y = a.Y:tile({0, 0}, {16, 32}, {pad = -inf})\n"
     "    a.Y:store({0, 0}, a.X:tile({0, 0}, {16, 32}) + rowmax(y))\n"
     "    a.Z:store({0, 0}, a.Y:tile({0, 0}, {16, 32}):T())\n"
     "  end }\n",
     "M=16,N=32", "", 0},
    {"rank 3 and offsets below zero",
     "return kernel { name = 'shift',\n"
     "  args = { tensor('X', f16, 'B', 'M', 'N'), out('Y', f16, 'B', 'M', 'N') },\n"
     "  grid = function(d) return d.B, cdiv(d.M, 8) end,\n"
     "  body = function(a, d, c, b, i)\n"
     "    local x = a.X:tile({b, i * 8 - 3, -2}, {1, 8, 24})\n"
     "    local y = a.X:tile({b, i * 8 + 1, 3}, {1, 8, 24}, {pad = 2})\n"
     "    a.Y:store({b, i * 8, 0}, x + y)\n"
     "  end }\n",
     "B=3,M=20,N=22", "X=pad2", 0},
    {"batched product",
     "return kernel { name = 'batched',\n"
     "  args = { tensor('A', bf16, 'B', 'M', 'K'), tensor('W', bf16, 'B', 'K', 'N'),\n"
     "           out('C', bf16, 'B', 'M', 'N') },\n"
     "  grid = function(d) return d.B, cdiv(d.M, 32), cdiv(d.N, 32) end,\n"
     "  body = function(a, d, c, b, i, j)\n"
     "    local acc = zeros(f32, 32, 32)\n"
     "    for k in range(0, d.K, 32) do\n"
     "      local x = a.A:tile({b, i * 32, k}, {1, 32, 32}):reshape(32, 32)\n"
     "      local w = a.W:tile({b, k, j * 32}, {1, 32, 32}):reshape(32, 32)\n"
     "      acc = acc + dot(x, w)\n"
     "    end\n"
     "    a.C:store({b, i * 32, j * 32}, cast(acc, bf16):reshape(1, 32, 32))\n"
     "  end }\n",
     "B=2,M=40,N=48,K=72", "", 0},
    {"reshapes that move elements",
     "return kernel { name = 'reshape',\n"
     "  args = { tensor('X', f32, 24, 20), out('Y', f32, 'M', 'N'), out('Z', f32, 480) },\n"
     "  grid = function(d) return 1 end,\n"
     "  body = function(a, d, c, i)\n"
     "    local x = a.X:tile({0, 0}, {24, 20})\n"
     "    a.Y:store({0, 0}, x:T():reshape(30, 16) + 1)\n"
     "    a.Z:store({0}, x:reshape(480) * 2)\n"
     "  end }\n",
     "M=30,N=16", "", 0},
    {"two products in one loop, one not used alone",
     "return kernel { name = 'glu',\n"
     "  args = { tensor('A', bf16, 'M', 'K'), tensor('W', bf16, 'N', 'K'), tensor('V', bf16, 'N', 'K'),\n"
     "           out('C', bf16, 'M', 'N'), out('S', f32, 'M', 1) },\n"
     "  grid = function(d) return cdiv(d.M, 32), 1 end,\n"
     "  body = function(a, d, c, i, j)\n"
     "    local x, y, s = zeros(f32, 32, 24), zeros(f32, 32, 24), zeros(f32, 32, 1)\n"
     "    for k in range(0, d.K, 32) do\n"
     "      local t = a.A:tile({i * 32, k}, {32, 32})\n"
     "      x = x + dot(t, a.W:tile({0, k}, {24, 32}):T())\n"
     "      y = y + dot(t, a.V:tile({0, k}, {24, 32}):T())\n"
     "      s = s + rowsum(cast(t, f32))\n"
     "    end\n"
     "    a.C:store({i * 32, 0}, cast(x + y * 2, bf16))\n"
     "    a.S:store({i * 32, 0}, s)\n"
     "  end }\n",
     "M=40,N=24,K=80", "W=col", 0},
};

static void run(const struct kernel *k, const char *knobs) {
  struct hf h;
  struct cg_test t;
  hf_init(&h);
  if (!hf_load(&h, "k.lua", k->text))
    fail_msg("%s: %s", k->name, hf_diags(&h));
  struct ir_module *m = hf_trace(&h, NULL, 0);
  if (!m)
    fail_msg("%s: %s", k->name, hf_diags(&h));
  cg_test_begin_module(&t, NULL);
  t.tile = ir_clone(m, &t.mem.arena);
  cg_test_simplify(&t);
  cg_test_args(&t, k->dims, k->layout, -2, 3);
  if (!cg_test_lower(&t, "sm_90a", knobs))
    fail_msg("%s: %s", k->name, cg_test_messages(&t));
  print_message("%s %s\n", k->name, knobs);
  cg_test_compare(&t, k->tolerance);
  cg_test_end(&t);
  hf_free(&h);
}

static void kernels_keep_their_meaning(void **state) {
  (void)state;
  for (unsigned i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
    run(&kernels[i], "");
    run(&kernels[i], "stages=3,threads=64,store=1");
    run(&kernels[i], "stages=1");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_keep_their_meaning)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
