/* Keeps the emulator honest: in the machine code of every reference kernel each op that orders
 * threads is left out in turn, or weakened; the emulator must report it, or its results differ from
 * those of the whole code. Mutants that survive are listed in tests/mutants_equivalent.txt with the
 * reason; one that is not listed fails, and so does an entry that no mutant needs. Ops that the
 * case does not come to are counted apart. In short one schedule for each kernel; KILN_LONG=1:
 * three. */
#include "api/api.h"
#include "codegen/emu.h"
#include "help_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#define N_SCHEDULES 3
static const char *const schedules[N_SCHEDULES][4] = {
    {NULL}, {"stages=1", "threads=128", NULL}, {"stages=4", "store=1", "peel=1", NULL}};

#define MAX_LISTED 200
struct listed {
  char name[600]; /* a shell pattern for "kernel, schedule n: mutation" */
  bool used;
};
static struct listed listed[MAX_LISTED];
static int n_listed;

static void read_list(void) {
  char line[600];
  FILE *f = fopen(KILN_SRC_DIR "/tests/mutants_equivalent.txt", "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) {
    char *dash = strstr(line, " -- ");
    if (line[0] == '#' || line[0] == '\n')
      continue;
    assert_true(n_listed < MAX_LISTED && dash && strlen(dash) > 20); /* a reason */
    *dash = 0;
    snprintf(listed[n_listed++].name, sizeof listed[0].name, "%s", line);
  }
  fclose(f);
}

static bool is_listed(const char *name) {
  for (int k = 0; k < n_listed; k++)
    if (fnmatch(listed[k].name, name, 0) == 0)
      return listed[k].used = true;
  return false;
}

/* ---- mutants ---- */

static int ways(const struct ir_module *m, struct ir_op o) {
  switch ((int)ir_op_at(m, o)->opcode) {
  case IR_BARRIER:
  case IR_PIPE_COMMIT: return 1;
  case IR_PIPE_WAIT: return 2;
  default: return 0;
  }
}

/* The n-th mutant, if there is one: what was done, as it is listed. trap: the op is still there,
 * and what comes to it fails. */
static bool mutate(struct ir_module *m, uint32_t n, bool trap, char *what, size_t size) {
  uint32_t seen[IR_OPCODE_COUNT] = {0};
  for (struct ir_op o = {1}; o.id < m->ops.n; o.id++) {
    int all = ir_op_at(m, o)->block.id ? ways(m, o) : 0;
    enum ir_opcode opcode = ir_op_at(m, o)->opcode;
    seen[opcode] += all > 0;
    if (n >= (uint32_t)all) {
      n -= (uint32_t)all;
      continue;
    }
    if (trap) {
      struct ir_builder b = {.m = m, .block = ir_op_at(m, o)->block, .before = o};
      struct ir_val no = ir_const_int(&b, DT_BOOL, 0);
      ir_build(&b, IR_CHECK, 1, &no, 0, NULL);
      return true;
    }
    if (n == 1)
      ir_set_attr(
          m, o,
          (struct ir_attr){.key = IR_ATTR_pending, .i = ir_attr_int(m, o, IR_ATTR_pending, 0) + 1});
    else
      ir_remove(m, o);
    snprintf(what, size, "%s %u %s", ir_info(opcode)->name, seen[opcode],
             n == 1 ? "leaves one group more open" : "is missing");
    return true;
  }
  return false;
}

/* ---- runs ---- */

struct memory {
  struct interp_arg args[24];
  char *base[24], *first[24];
  double *values[24];
  size_t bytes[24];
};

static uint64_t random_state;

static int next(int n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random_state >> 33) % (uint64_t)n);
}

static void put_dense(const struct interp_tensor *t, const double *values) {
  int64_t n = 1, at[IR_MAX_RANK] = {0}, e = t->offset;
  for (uint32_t d = 0; d < t->rank; d++)
    n *= t->dim[d];
  for (int64_t i = 0; i < n; i++) {
    num_store(t->dtype, t->data, e, values[i]);
    for (uint32_t d = t->rank; d-- > 0;) {
      e += t->stride[d];
      if (++at[d] < t->dim[d])
        break;
      e -= at[d] * t->stride[d];
      at[d] = 0;
    }
  }
}

/* The kernel's own inputs, where it has some; else small integers. Outputs hold those too. */
static void fill(struct memory *x, const struct api_problem *p) {
  random_state = 1;
  uint64_t given = 0;
  struct fe_array arrays[24];
  for (uint32_t i = 0; i < p->n_args; i++) {
    arrays[i].rank = p->args[i].rank;
    memcpy(arrays[i].dim, p->args[i].dim, sizeof arrays[i].dim);
    arrays[i].data = x->values[i];
  }
  struct fe_problem fp = {.config = &p->config,
                          .dim = api_dim_lookup,
                          .dim_user = (void *)(uintptr_t)p,
                          .absent = p->absent};
  if (p->kernel->has_inputs)
    assert_true(fe_inputs(p->file->fe, p->kernel, &fp, p->seed, arrays, &given));
  for (uint32_t i = 0; i < p->n_args; i++) {
    const struct api_arg *arg = &p->args[i];
    if (!x->base[i])
      continue;
    for (int64_t e = 0; e < (int64_t)(x->bytes[i] * 8 / dtype_bits(arg->dtype)); e++)
      num_store(arg->dtype, x->base[i], e, next(dtype_is_float(arg->dtype) ? 5 : 3));
    if (given >> i & 1)
      put_dense(&x->args[i].tensor, x->values[i]);
  }
}

static void make(struct memory *x, const struct api_problem *p) {
  memset(x, 0, sizeof *x);
  assert_true(p->n_args <= 24);
  for (uint32_t i = 0; i < p->n_args; i++) {
    const struct api_arg *arg = &p->args[i];
    struct interp_tensor *t = &x->args[i].tensor;
    if (arg->absent)
      continue;
    x->args[i].f = arg->number;
    x->args[i].i = api_scalar_int(arg->dtype, arg->number);
    if (arg->kind == IR_ARG_SCALAR)
      continue;
    int64_t lo = 0, hi = 0;
    for (uint32_t d = 0; d < arg->rank; d++) {
      t->dim[d] = arg->dim[d];
      t->stride[d] = arg->stride[d];
      int64_t far = arg->dim[d] ? (arg->dim[d] - 1) * arg->stride[d] : 0;
      *(far < 0 ? &lo : &hi) += far;
    }
    t->rank = arg->rank;
    t->dtype = arg->dtype;
    x->bytes[i] = (size_t)dtype_bytes(arg->dtype, hi - lo + 1) + 8;
    x->base[i] = aligned_alloc(256, (x->bytes[i] + 511) / 256 * 256);
    x->first[i] = malloc(x->bytes[i]);
    x->values[i] = malloc(8 * (size_t)api_elements(arg) + 8);
    t->data = x->base[i];
    t->offset = -lo;
  }
}

static void drop(struct memory *x) {
  for (int i = 0; i < 24; i++) {
    free(x->base[i]);
    free(x->first[i]);
    free(x->values[i]);
  }
}

static bool run(const struct ir_module *m, const struct api_problem *p, struct memory *x,
                uint32_t k, struct diag_sink *diags) {
  struct emu_options opt = {.max_steps = 50000000};
  emu_choose_run(&opt, k, 1);
  fill(x, p);
  return emu_run(m, x->args, p->n_args, &opt, NULL, diags, &mem_libc);
}

static bool is_caught(const struct ir_module *m, const struct api_problem *p, struct memory *x,
                      struct diag_sink *diags) {
  for (uint32_t k = 0; k < EMU_RUNS; k++) {
    diag_clear(diags);
    if (!run(m, p, x, k, diags)) {
      enum diag_id id = diags->list.at[0].id;
      if (id == DIAG_INTERNAL || id == DIAG_NO_MEMORY)
        fail_msg("%s", diags->list.at[0].message);
      return true;
    }
    for (uint32_t i = 0; i < p->n_args; i++)
      if (x->base[i] && memcmp(x->base[i], x->first[i], x->bytes[i]) != 0)
        return true;
  }
  return false;
}

/* The n-th mutant of a clone of the module. False: there is none. */
static bool try(const struct ir_module *whole, uint32_t n, bool trap, const struct api_problem *p,
                struct memory *x, char *what, size_t size, bool *caught) {
  struct diag_sink diags;
  struct arena a;
  struct oom_trap oom;
  assert_true(diag_init(&diags, &mem_libc));
  arena_init(&a, &mem_libc, &oom);
  struct ir_module *m = ir_clone(whole, &a);
  bool made = mutate(m, n, trap, what, size);
  *caught = made && is_caught(m, p, x, &diags);
  arena_free(&a);
  diag_free(&diags);
  return made;
}

struct tally {
  uint32_t mutants, caught, listed, unlisted, not_reached;
};

static void mutate_all(struct kiln_variant *v, const struct api_problem *p, const char *kernel,
                       struct tally *tally) {
  struct diag_sink diags;
  struct memory x;
  assert_true(diag_init(&diags, &mem_libc));
  make(&x, p);
  if (!run(v->machine, p, &x, 0, &diags)) /* unharmed, it runs */
    fail_msg("%s: %s", kernel, diags.list.at[0].message);
  for (uint32_t i = 0; i < p->n_args; i++)
    if (x.base[i])
      memcpy(x.first[i], x.base[i], x.bytes[i]);
  bool caught;
  char what[100], name[300];
  for (uint32_t n = 0; try(v->machine, n, false, p, &x, what, sizeof what, &caught); n++) {
    bool reached = caught;
    snprintf(name, sizeof name, "%s: %s", kernel, what);
    if (!caught)
      try(v->machine, n, true, p, &x, what, sizeof what, &reached);
    tally->mutants++;
    tally->caught += caught;
    tally->not_reached += !reached;
    if (caught || !reached)
      continue;
    bool known = is_listed(name);
    tally->listed += known;
    tally->unlisted += !known;
    if (!known)
      print_message("survives: %s\n", name);
  }
  drop(&x);
  diag_free(&diags);
}

/* The case with the most elements: small ones leave loops out. */
static int32_t largest_case(struct kiln_file *file, const char *kernel) {
  int32_t best = 0;
  int64_t most = -1;
  for (uint32_t i = 0; i < kiln_file_case_count(file, kernel); i++) {
    struct kiln_request req = help_api_request();
    struct api_problem p;
    struct arena a;
    struct oom_trap trap;
    int64_t n = 0;
    req.kernel = kernel;
    req.case_index = (int32_t)i;
    arena_init(&a, &mem_libc, &trap);
    if (api_resolve(file, &req, true, &a, &p))
      for (uint32_t k = 0; k < p.n_args; k++)
        n += p.args[k].kind == IR_ARG_SCALAR ? 0 : api_elements(&p.args[k]);
    if (n > most) {
      most = n;
      best = (int32_t)i;
    }
    arena_free(&a);
  }
  return best;
}

static void one(struct help_api *t, struct kiln_file *file, const char *kernel, int s,
                struct tally *tally) {
  struct kiln_request req = help_api_request();
  struct api_problem p;
  struct kiln_variant *v = NULL;
  struct arena a;
  struct oom_trap trap;
  char name[100];
  req.kernel = kernel;
  req.case_index = largest_case(file, kernel);
  /* More iterations than a pipe has slots; all keys in one part, and many. */
  bool grouped = strcmp(kernel, "gemm_grouped") == 0, part = strcmp(kernel, "decode_part") == 0;
  req.n_shapes = grouped ? 1 : part ? 2 : 0;
  req.shapes = grouped ? (const char *const[]){"K=512"} : (const char *const[]){"S=1", "X=20"};
  const char *set[8];
  while (schedules[s][req.n_set]) {
    set[req.n_set] = schedules[s][req.n_set];
    req.n_set++;
  }
  if (strncmp(kernel, "attention", 9) == 0) /* several iterations with masks */
    set[req.n_set++] = "BM=64";
  req.set = set;
  arena_init(&a, &mem_libc, &trap);
  snprintf(name, sizeof name, "%s, schedule %d", kernel, s);
  if (kiln_specialise(file, &req, &v) == KILN_OK && api_lower(v) == KILN_OK &&
      api_resolve(file, &req, true, &a, &p))
    mutate_all(v, &p, name, tally);
  kiln_diag_clear(t->ctx); /* what is not lowered, or over a limit, is others' to say */
  kiln_variant_free(v);
  arena_free(&a);
}

static void mutants_are_reported(void **state) {
  (void)state;
  bool all = getenv("KILN_LONG") != NULL;
  struct tally tally = {0};
  glob_t files;
  read_list();
  assert_int_equal(glob(KILN_SRC_DIR "/kernels_ref/*.lua", 0, NULL, &files), 0);
  for (size_t f = 0; f < files.gl_pathc; f++) {
    struct help_api t = {0};
    struct kiln_file *file = NULL;
    help_api_start(&t, NULL);
    help_api_expect(&t, kiln_file_load(t.ctx, files.gl_pathv[f], NULL, &file), KILN_OK, NULL);
    for (uint32_t k = 0; k < kiln_file_kernel_count(file); k++)
      for (int s = 0; s < N_SCHEDULES; s++)
        if (all || s == (int)((k + f) % N_SCHEDULES))
          one(&t, file, kiln_file_kernel_name(file, k), s, &tally);
    kiln_file_free(file);
    help_api_stop(&t);
  }
  globfree(&files);
  print_message("%u mutants: %u caught, %u equivalent, %u in code that the case does not come to\n",
                tally.mutants, tally.caught, tally.listed, tally.not_reached);
  for (int k = 0; k < n_listed && all; k++)
    if (!listed[k].used) {
      print_message("listed, but caught or gone: %s\n", listed[k].name);
      tally.unlisted++;
    }
  assert_int_equal(tally.unlisted, 0);
  assert_true(tally.mutants > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mutants_are_reported)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
