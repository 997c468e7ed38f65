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
  struct cg_schedule s = {0};
  for (unsigned i = 0; i < CG_KNOB_COUNT; i++)
    s.knob[i] = CG_AUTO;
  return s;
}

/* The pins, and room for one more. */
static struct cg_pin *copy_pins(const struct cg_schedule *s, struct arena *a) {
  struct cg_pin *pins = ARENA_ARRAY(a, struct cg_pin, s->n_pins + 1);
  for (uint32_t i = 0; i < s->n_pins; i++)
    pins[i] = (struct cg_pin){arena_strdup(a, s->pins[i].key),
                              s->pins[i].word ? arena_strdup(a, s->pins[i].word) : NULL,
                              s->pins[i].number};
  return pins;
}

struct cg_schedule cg_schedule_copy(const struct cg_schedule *s, struct arena *a) {
  struct cg_schedule c = *s;
  c.pins = copy_pins(s, a);
  return c;
}

void cg_schedule_pin(struct cg_schedule *s, struct cg_pin pin, struct arena *a) {
  struct cg_pin *pins = copy_pins(s, a);
  pins[s->n_pins++] = (struct cg_pin){arena_strdup(a, pin.key),
                                      pin.word ? arena_strdup(a, pin.word) : NULL, pin.number};
  s->pins = pins;
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

bool cg_spare_more(struct cg_schedule *s) {
  int64_t *spare = &s->knob[CG_KNOB_SPARE];
  if (*spare >= knobs[CG_KNOB_SPARE].max)
    return false;
  *spare = *spare == CG_AUTO ? 1 : *spare + 1;
  return true;
}

static struct sym key_of(struct ir_module *m, enum cg_knob k) {
  char key[64] = CG_SCHEDULE_PREFIX;
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

/* Adds or replaces. */
static void put_entry(struct ir_module *m, struct ir_config_entry e) {
  for (uint32_t i = 0; i < m->config.n; i++)
    if (m->config.at[i].key.id == e.key.id) {
      m->config.at[i] = e;
      return;
    }
  VEC_PUSH(m->arena, &m->config, e);
}

void cg_knob_put(struct ir_module *m, enum cg_knob k, int64_t value) {
  put_entry(m, (struct ir_config_entry){.key = key_of(m, k), .kind = IR_CFG_INT, .i = value});
}

/* The module, which shares all but its config, without a knob. */
static struct ir_module without(struct ir_module *m, enum cg_knob k) {
  struct ir_module x = *m;
  struct sym key = key_of(m, k);
  x.config.at = ARENA_ARRAY(m->arena, struct ir_config_entry, m->config.n + 1);
  x.config.n = 0;
  for (uint32_t i = 0; i < m->config.n; i++)
    if (m->config.at[i].key.id != key.id)
      x.config.at[x.config.n++] = m->config.at[i];
  return x;
}

bool cg_is_same_kernel(struct ir_module *a, struct ir_module *b) {
  struct ir_module x = without(a, CG_KNOB_SPARE), y = without(b, CG_KNOB_SPARE);
  return ir_equal(&x, &y, NULL);
}

bool cg_is_pinned(const struct ir_module *m, const char *label, const char *field) {
  size_t prefix = strlen(CG_SCHEDULE_PREFIX), n = strlen(label);
  for (uint32_t i = 0; i < m->config.n; i++) {
    const char *key = ir_sym(m, m->config.at[i].key);
    if (str_starts(key, CG_SCHEDULE_PREFIX) && strncmp(key + prefix, label, n) == 0 &&
        key[prefix + n] == '.' && str_eq(key + prefix + n + 1, field))
      return true;
  }
  return false;
}

void cg_pin_put(struct ir_module *m, const struct cg_pin *pin) {
  const char *key = arena_printf(m->arena, CG_SCHEDULE_PREFIX "%s", pin->key);
  struct ir_config_entry e = {.key = symtab_get(m->syms, key), .kind = IR_CFG_INT};
  e.i = pin->number;
  if (pin->word) {
    e.kind = IR_CFG_STR;
    e.s = symtab_get(m->syms, pin->word);
  }
  put_entry(m, e);
}
