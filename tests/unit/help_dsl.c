/* See help_dsl.h. */
#include "help_dsl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char in_body[] =
    "local x, y = a.X:tile({0, 0}, {4, 8}), a.X:tile({4, 0}, {4, 8})\n"
    "local v, n, s, m = a.V:tile({0}, {8}), a.N:tile({0, 0}, {4, 8}), d.S, x < y\n";
static const char in_oracle[] =
    "local x, y = t.X:slice({0, 0}, {4, 8}), t.X:slice({4, 0}, {4, 8})\n"
    "local v, n, s, m = t.V, t.N, d.S, lt(x, y)\n";
static const char in_grid[] = "local x, y, s = d.S, d.R, d.S\n";
static const char in_file[] = "local x, y, s, m = 2.5, 3, 64, true\n";

static const char args[] = "args = { tensor('X', f32, 8, 8), tensor('V', f32, 8), "
                           "tensor('N', s32, 4, 8), tensor('Z', f32, 'S', 'R'), "
                           "out('Y', f32, 8, 8), inout('I', s32, 8) }, ";
static const char here[] = " -- here";

const char *hd_file(struct hf *h, char place, const char *code) {
  struct strbuf b = {.arena = &h->arena};
  const char *file = "", *body = "", *grid = "", *oracle = "", *inputs = "";
  const char *line = arena_printf(&h->arena, "%s%s\n", code, here);
  switch (place) {
  case 'b': body = arena_printf(&h->arena, "%s%s", in_body, line); break;
  case 'g': grid = arena_printf(&h->arena, "%s%s", in_grid, line); break;
  case 'o': oracle = arena_printf(&h->arena, "%s%s", in_oracle, line); break;
  case 'i': inputs = line; break;
  case 'n':
  case 'f': file = arena_printf(&h->arena, "%s%s", in_file, line); break;
  default: fail_msg("no such place: %c", place);
  }
  sb_printf(&b,
            "local K = { name = 'k', args = { out('Y', f32, 4) }, grid = function() return 1 end, "
            "body = function() end }\n"
            "do %send\n"
            "return kernel { name = 'example', %sgrid = function(d) %sreturn 1 end,\n"
            "body = function(a, d, c, i)\n%send,\n"
            "inputs = function(shape, rng, c)\n%sreturn {} end,\n"
            "oracle = function(t, d, c)\n%sreturn zeros(f32, 8, 8), zeros(f32, 8) end }\n",
            file, args, grid, body, inputs, oracle);
  return sb_str(&b);
}

uint32_t hd_line(const char *file) {
  const char *end = strstr(file, here);
  assert_non_null(end);
  uint32_t line = 1;
  for (const char *p = file; p < end; p++)
    line += *p == '\n';
  return line;
}

static bool dims(void *user, const char *name, int64_t *value) {
  (void)user;
  *value = 8;
  return str_eq(name, "S") || str_eq(name, "R");
}

bool hd_run_oracle(struct hf *h) {
  double data[64], out[64], out_i[8];
  const struct fe_kernel *k = fe_kernel_at(h->file, 0);
  struct fe_config config;
  struct fe_array in[6] = {
      {.rank = 2, .dim = {8, 8}, .data = data}, {.rank = 1, .dim = {8}, .data = data},
      {.rank = 2, .dim = {4, 8}, .data = data}, {.rank = 2, .dim = {8, 8}, .data = data},
      {.rank = 2, .dim = {8, 8}, .data = data}, {.rank = 1, .dim = {8}, .data = data}};
  struct fe_array results[6] = {
      [4] = {.rank = 2, .dim = {8, 8}, .data = out}, [5] = {.rank = 1, .dim = {8}, .data = out_i}};
  for (int i = 0; i < 64; i++)
    data[i] = i * 0.25 - 4;
  struct fe_problem p = {.config = &config, .dim = dims};
  uint64_t given;
  return fe_default_config(h->file, k, &h->arena, NULL, &config) &&
         fe_inputs(h->file, k, &p, 1, in, &given) && fe_oracle(h->file, k, &p, in, results);
}
