/* The knobs of a schedule: names, ranges, and how they lie in a module's config. */
#include "codegen/schedule.h"

static const struct {
  const char *text;
  int64_t min, max;
  const char *meaning;
} knobs[] = {
#define KNOB(id, text, min, max, meaning) {text, min, max, meaning},
#include "codegen/knobs.def"
};

struct cg_schedule cg_schedule_auto(void) {
  struct cg_schedule s;
  for (unsigned i = 0; i < CG_KNOB_COUNT; i++)
    s.knob[i] = CG_AUTO;
  return s;
}

static unsigned find(const char *key) {
  unsigned i = 0;
  while (i < CG_KNOB_COUNT && !str_eq(knobs[i].text, key))
    i++;
  return i;
}

bool cg_is_knob(const char *key) {
  return find(key) < CG_KNOB_COUNT;
}

const char *cg_knob_name(enum cg_knob k) {
  return knobs[k].text;
}

bool cg_schedule_set(struct cg_schedule *s, const char *key, int64_t value, struct arena *a,
                     const char **error) {
  unsigned k = find(key);
  if (k == CG_KNOB_COUNT) {
    struct strbuf names = {.arena = a};
    for (unsigned i = 0; i < CG_KNOB_COUNT; i++)
      sb_printf(&names, i ? ", %s" : "%s", knobs[i].text);
    *error = arena_printf(a, "there is no schedule knob `%s`; there are %s", key, sb_str(&names));
    return false;
  }
  bool whole_warps = k != CG_KNOB_THREADS || value % 32 == 0;
  if (value < knobs[k].min || value > knobs[k].max || !whole_warps) {
    *error = arena_printf(a, "schedule knob `%s` (%s) is %lld; it must be %lld to %lld%s", key,
                          knobs[k].meaning, (long long)value, (long long)knobs[k].min,
                          (long long)knobs[k].max, whole_warps ? "" : ", a multiple of 32");
    return false;
  }
  s->knob[k] = value;
  return true;
}

static struct sym key_of(struct ir_module *m, enum cg_knob k) {
  char key[64] = "schedule.";
  strcat(key, knobs[k].text);
  return symtab_get(m->syms, key);
}

int64_t cg_knob_get(struct ir_module *m, enum cg_knob k) {
  struct sym key = key_of(m, k);
  for (uint32_t i = 0; i < m->config.n; i++)
    if (m->config.at[i].key.id == key.id)
      return m->config.at[i].i;
  return CG_AUTO;
}

void cg_knob_put(struct ir_module *m, enum cg_knob k, int64_t value) {
  struct sym key = key_of(m, k);
  for (uint32_t i = 0; i < m->config.n; i++)
    if (m->config.at[i].key.id == key.id) {
      m->config.at[i].kind = IR_CFG_INT;
      m->config.at[i].i = value;
      return;
    }
  struct ir_config_entry e = {.key = key, .kind = IR_CFG_INT, .i = value};
  VEC_PUSH(m->arena, &m->config, e);
}
