/* Every function and method of the language (frontend/dsl.def) with every kind of wrong value at
 * every argument, with an argument too few and too many, and every operator on every pair of
 * kinds. Each is accepted, where the row's signature allows that kind, or refused by one message
 * at its line that names the function. KILN_SHOW=1 prints all messages. */
#include "help_dsl.h"

#include "frontend/dsl.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* What a value is to a signature. */
enum {
  A_NIL = 1,
  A_BOOL = 2,
  A_STRING = 4,
  A_INT = 8,     /* a whole number */
  A_NUMBER = 16, /* any other */
  A_LIST = 32,
  A_TABLE = 64, /* with names */
  A_FUNCTION = 128,
  A_DTYPE = 256,
  A_VALUE = 512, /* tile, device scalar, array */
  A_TENSOR = 1024,
  A_ANY = 2047
};

struct kind {
  const char *text, *places;
  int is;
};

static const struct kind kinds[] = {
    {"nil", "bogif", A_NIL},
    {"true", "bogif", A_BOOL},
    {"'text'", "bogif", A_STRING},
    {"2", "bogif", A_INT},
    {"-1", "bogif", A_INT},
    {"16777217", "bgf", A_INT},
    {"70001", "oi", A_INT},
    {"math.maxinteger", "bogif", A_INT},
    {"2.5", "bogif", A_NUMBER},
    {"1e300", "bogif", A_NUMBER},
    {"inf", "bogif", A_NUMBER},
    {"(0/0)", "bogif", A_NUMBER},
    {"{}", "bogif", A_LIST | A_TABLE},
    {"{1, 2}", "bogif", A_LIST},
    {"{true, 'text'}", "bogif", A_LIST},
    {"{1, nil, 2}", "bogif", A_LIST},
    {"{{1}, {2}}", "bogif", A_LIST},
    {"{x, x}", "bo", A_LIST},
    {"{padd = 1}", "bogif", A_TABLE},
    {"{prec = 'tf32', padd = 1}", "b", A_TABLE},
    {"math", "bogif", A_TABLE},
    {"type", "bogif", A_FUNCTION},
    {"function() end", "bogif", A_FUNCTION},
    {"f32", "bogif", A_DTYPE},
    {"s4", "bogif", A_DTYPE},
    {"s", "bg", A_VALUE},
    {"s", "o", A_INT},
    {"sum(x)", "b", A_VALUE},
    {"sum(x)", "o", A_NUMBER},
    {"(s < 4)", "b", A_VALUE},
    {"(s < 4)", "o", A_BOOL},
    {"(s < 4)", "g", A_VALUE},
    {"m", "bo", A_VALUE},
    {"x", "bo", A_VALUE},
    {"n", "bo", A_VALUE},
    {"v", "bo", A_VALUE},
    {"x:T()", "bo", A_VALUE},
    {"x:reshape(2, 2, 8)", "bo", A_VALUE},
    {"cast(x, e4m3)", "b", A_VALUE},
    {"cast(n, s4)", "b", A_VALUE},
    {"cast(x, f64)", "b", A_VALUE},
    {"iota(1, 8)", "bo", A_VALUE},
    {"a.X", "b", A_TENSOR},
    {"a.X:T()", "b", A_TENSOR},
    {"a", "b", A_TABLE},
    {"d", "bog", A_TABLE},
    {"t", "o", A_TABLE},
    {"rng", "i", A_TABLE},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, MAX_ARGS = 8 };

/* ---- calls ---- */

/* `head(arg, arg)tail`, the call of the row's function in its example. */
struct call {
  const char *head, *tail;
  const char *arg[MAX_ARGS];
  uint32_t n;
};

static struct call parse(struct hf *h, const struct dsl_entry *e) {
  struct call c = {0};
  const char *p = strstr(e->example, arena_printf(&h->arena, "%s(", e->name));
  if (!p) /* f {...} */
    return c;
  while (p && p > e->example && (isalnum((unsigned char)p[-1]) || p[-1] == '_'))
    p = strstr(p + 1, arena_printf(&h->arena, "%s(", e->name));
  /* Of a chain of methods the last call is meant. */
  for (const char *q; (q = strstr(p + 1, arena_printf(&h->arena, ":%s(", e->name))) != NULL;)
    p = q + 1;
  p += strlen(e->name) + 1;
  c.head = arena_strndup(&h->arena, e->example, (size_t)(p - e->example));
  const char *start = p;
  for (int depth = 0;; p++) {
    depth += (*p == '(' || *p == '{') - (*p == ')' || *p == '}');
    bool ends = depth < 0;
    if (ends || (*p == ',' && depth == 0)) {
      /* The function of map has an `end` of its own. */
      while (*start == ' ')
        start++;
      if (p > start && c.n < MAX_ARGS)
        c.arg[c.n++] = arena_strndup(&h->arena, start, (size_t)(p - start));
      start = p + 1;
    }
    if (ends)
      break;
  }
  c.tail = p + 1;
  return c;
}

static const char *text_of(struct hf *h, const struct call *c) {
  struct strbuf b = {.arena = &h->arena};
  sb_puts(&b, c->head);
  for (uint32_t i = 0; i < c->n; i++)
    sb_printf(&b, "%s%s", i ? ", " : "", c->arg[i]);
  sb_printf(&b, ")%s", c->tail);
  return sb_str(&b);
}

/* ---- signatures ---- */

static int of_word(const char *s, size_t n) {
  static const struct {
    const char *name;
    int is;
  } words[] = {{"integer", A_INT},
               {"number", A_INT | A_NUMBER},
               {"num", A_INT | A_NUMBER | A_VALUE},
               {"T", A_INT | A_NUMBER | A_VALUE},
               {"boolean", A_BOOL | A_VALUE},
               {"value", A_VALUE | A_INT | A_NUMBER},
               {"string", A_STRING},
               {"dtype", A_DTYPE},
               {"arg", 0},
               {"function", A_FUNCTION},
               {"description", A_TABLE},
               {"any", A_ANY}};
  if (n > 2 && s[n - 1] == ']')
    return A_LIST;
  if (s[0] == '{' || (n >= 5 && memcmp(s, "table", 5) == 0))
    return A_TABLE;
  if (n > 3 && memcmp(s, "fun", 3) == 0)
    return A_FUNCTION;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i].name) == n && memcmp(words[i].name, s, n) == 0)
      return words[i].is;
  fail_msg("no such type: %.*s", (int)n, s);
  return 0;
}

/* What a field's type takes. */
static int of_type(const char *type) {
  size_t n = strlen(type);
  bool optional = n && type[n - 1] == '?';
  if (n - optional > 2 && type[0] == '(' && type[n - optional - 1] == ')') { /* (fun(...): ...)? */
    type++;
    n -= 2;
  }
  return of_word(type, n - optional) | (optional ? A_NIL : 0);
}

/* What the i-th argument may be; -1: there is none. */
static int takes(const struct dsl_entry *e, uint32_t i) {
  const char *s = e->signature + 1;
  for (uint32_t k = 0; *s != ')'; k++) {
    bool rest = str_starts(s, "...");
    s += strcspn(s, ":?");
    int is = *s == '?' ? A_NIL : rest ? A_NIL : 0;
    s += *s == '?' ? 3 : 2;
    for (;;) {
      const char *begin = s;
      for (int depth = 0; depth || (*s != ',' && *s != ')' && *s != '|'); s++)
        depth += (*s == '(' || *s == '{' || *s == '<') - (*s == ')' || *s == '}' || *s == '>');
      is |= of_word(begin, (size_t)(s - begin));
      if (*s != '|')
        break;
      s++;
    }
    if (k == i || rest)
      return is;
    s += strspn(s, ", ");
  }
  return -1;
}

/* ---- messages ---- */

static bool show, bad;
static uint32_t n_accepted, n_refused;

static void complain(struct hf *h, const char *code, const char *what) {
  print_message("POOR %s: %s\n  %s", code, what, hf_diags(h));
  bad = true;
}

/* Words that tell people nothing. */
static const char *const poor[] = {"internal", "bad argument", "userdata", "0x",       "(null)",
                                   "attempt",  "upvalue",      "-nan",     "no reason"};

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static bool has_word(const char *text, const char *word) {
  size_t n = strlen(word);
  for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
    if ((p == text || !is_word(p[-1])) && !is_word(p[n]))
      return true;
  return false;
}

/* One mistake, one message; a list, or arguments that are missing, can be several mistakes. */
static void check_messages(struct hf *h, const char *code, const char *name, uint32_t line,
                           uint32_t most) {
  if (h->diags.n_errors < 1 || h->diags.n_errors > most)
    complain(h, code, "more than one error");
  for (uint32_t k = 0; k < h->diags.list.n; k++) {
    const struct diag *d = &h->diags.list.at[k];
    if (d->loc.line != line || !d->loc.col)
      complain(h, code, "the place is not the call's");
    if (!has_word(d->message, name))
      complain(h, code, "the function is not named");
    for (size_t i = 0; i < sizeof poor / sizeof *poor; i++)
      if (strstr(d->message, poor[i]))
        complain(h, code, poor[i]);
  }
}

/* Runs the code; true if it was accepted. */
static bool try(char place, const char *code, const char *name, uint32_t most) {
  struct hf h;
  hf_init(&h);
  const char *text = hd_file(&h, place, code);
  bool ok = hf_load(&h, "t.lua", text) && hf_trace(&h, "example", 0) &&
            ((place != 'o' && place != 'i') || hd_run_oracle(&h));
  if (ok && h.diags.n_errors)
    complain(&h, code, "an error and yet success");
  if (!ok && !h.diags.n_errors)
    complain(&h, code, "failed without a word");
  if (!ok && h.diags.n_errors)
    check_messages(&h, code, name, hd_line(text), most);
  if (show)
    print_message("%c %-50s %s%s", place, code, ok ? "ACCEPTED" : "", ok ? "\n" : hf_diags(&h));
  n_accepted += ok;
  n_refused += !ok;
  hf_free(&h);
  return ok;
}

/* The same for an operator. */
static void try_sign(char place, const char *code, const char *sign, uint32_t most) {
  struct hf h;
  hf_init(&h);
  const char *text = hd_file(&h, place, code);
  bool ok = hf_load(&h, "t.lua", text) && hf_trace(&h, "example", 0) &&
            (place != 'o' || hd_run_oracle(&h));
  if (ok != !h.diags.n_errors)
    complain(&h, code, "success and errors do not agree");
  for (uint32_t i = 0; i < h.diags.list.n; i++) {
    const struct diag *d = &h.diags.list.at[i];
    if (d->loc.line != hd_line(text) || !d->loc.col)
      complain(&h, code, "the place is not the operator's");
    static const char *const said[] = {"attempt to ", "compar",   "concatenate", "length",
                                       " fit ",       "fraction", "is no number"};
    bool named = strstr(d->message, sign) != NULL;
    for (size_t w = 0; w < sizeof said / sizeof *said; w++)
      named |= strstr(d->message, said[w]) != NULL;
    if (!named)
      complain(&h, code, "the operator is not named");
  }
  if (h.diags.n_errors > most)
    complain(&h, code, "more than one error");
  if (show)
    print_message("%c %-50s %s%s", place, code, ok ? "ACCEPTED" : "", ok ? "\n" : hf_diags(&h));
  n_accepted += ok;
  n_refused += !ok;
  hf_free(&h);
}

static const char *statement(struct hf *h, const struct dsl_entry *e, const char *call) {
  if (str_eq(e->name, "range"))
    return arena_printf(&h->arena, "for k in %s do a.Y:store({k, 0}, x) end", call);
  if (e->owner == DSL_OF_tensor && (str_eq(e->name, "store") || str_eq(e->name, "scatter")))
    return call;
  return arena_printf(&h->arena, "local result = %s", call);
}

static void misuse(const struct dsl_entry *e, char place) {
  struct hf h; /* for its arena */
  /* Each field is a mistake of its own; a list of options that is not the last is a dim, too. */
  bool fields = str_eq(e->name, "kernel") || str_eq(e->name, "scratch");
  hf_init(&h);
  struct call c = parse(&h, e);
  for (uint32_t i = 0; c.head && i <= c.n && i < MAX_ARGS; i++) {
    int may = takes(e, i);
    for (uint32_t k = 0; k < N_KINDS; k++) {
      if (!strchr(kinds[k].places, place))
        continue;
      struct call wrong = c;
      wrong.arg[i] = kinds[k].text;
      wrong.n += i == c.n;
      const char *code = text_of(&h, &wrong);
      uint32_t most = fields ? 40 : kinds[k].is & A_LIST ? 2 : 1;
      if (try(place, statement(&h, e, code), e->name, most) &&
          (may < 0 ? kinds[k].is != A_NIL
                   : !(kinds[k].is & may) ||
                         strstr(kinds[k].text, "padd"))) { /* no function has that option */
        print_message("POOR %c accepts %s\n", place, code);
        bad = true;
      }
    }
    /* Too few. A function that map calls is the author's, and so is its error. */
    if (i < c.n && !(str_eq(e->name, "map") && i > 1)) {
      struct call few = c;
      few.n = i;
      const char *code = text_of(&h, &few);
      int next = takes(e, i);
      if (try(place, statement(&h, e, code), e->name, c.n - i) && next >= 0 && !(next & A_NIL)) {
        print_message("POOR %c accepts %s\n", place, code);
        bad = true;
      }
    }
  }
  hf_free(&h);
}

static void test_functions(void **state) {
  (void)state;
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  for (uint32_t i = 0; i < n; i++)
    for (const char *place = e[i].on; e[i].fn && *place; place++)
      if (*place != 'n')
        misuse(&e[i], *place);
  print_message("%u accepted, %u refused\n", n_accepted, n_refused);
  assert_false(bad);
  assert_true(n_accepted > 1000 && n_refused > 10000);
}

/* ---- operators ---- */

/* An operator on two kinds, or one: refused with its sign in the message, or by Lua's own message
 * where no device value takes part. */
static void operate(char place, const char *sign, const struct kind *p, const struct kind *q) {
  struct hf h;
  hf_init(&h);
  bool plain = !((p->is | (q ? q->is : 0)) & (A_VALUE | A_TENSOR)); /* stock Lua's business */
  const char *code = q ? arena_printf(&h.arena, "local result = %s %s %s", p->text, sign, q->text)
                       : arena_printf(&h.arena, "local result = %s %s", sign, p->text);
  if (!plain)
    try_sign(place, code, sign, q && p->is & q->is & A_TENSOR ? 2 : 1);
  hf_free(&h);
}

static void test_operators(void **state) {
  (void)state;
  static const char *const binary[] = {"+",  "-",  "*",  "/",  "//", "%",  "^", "&",  "|", "~",
                                       "<<", ">>", "==", "~=", "<",  "<=", ">", ">=", ".."};
  static const char *const unary[] = {"-", "~", "#", "not"};
  static const char places[] = "bog";
  for (const char *place = places; *place; place++)
    for (uint32_t i = 0; i < N_KINDS; i++) {
      if (!strchr(kinds[i].places, *place))
        continue;
      for (size_t s = 0; s < sizeof unary / sizeof *unary; s++)
        operate(*place, unary[s], &kinds[i], NULL);
      for (uint32_t k = 0; k < N_KINDS; k++)
        for (size_t s = 0; strchr(kinds[k].places, *place) && s < sizeof binary / sizeof *binary;
             s++)
          operate(*place, binary[s], &kinds[i], &kinds[k]);
    }
  print_message("%u accepted, %u refused\n", n_accepted, n_refused);
  assert_false(bad);
}

/* ---- fields ---- */

/* A field of kernel{} or of a case that is of the wrong kind: refused, at the kernel, with the
 * field's name. `of`: table<...>, integer?, ...: nothing else is accepted. */
static void wrong_field(const struct dsl_entry *e, const struct kind *k) {
  static const struct {
    const char *name, *value;
  } good[] = {{"name", "'k'"},
              {"args", "{ out('Y', f32, 'M') }"},
              {"grid", "function() return 1 end"},
              {"body", "function() end"}};
  struct hf h;
  hf_init(&h);
  struct strbuf b = {.arena = &h.arena};
  sb_puts(&b, "local x, y, s, m = 2.5, 3, 64, true\nreturn kernel {");
  bool in_case = e->owner == DSL_OF_case;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (in_case || !str_eq(good[i].name, e->name))
      sb_printf(&b, " %s = %s,", good[i].name, good[i].value);
  if (in_case)
    sb_printf(&b, " cases = { { %s%s = %s } } }\n",
              str_eq(e->name, "shape") ? "" : "shape = { M = 4 }, ", e->name, k->text);
  else
    sb_printf(&b, " %s = %s }\n", e->name, k->text);
  const char *code = sb_str(&b);
  bool ok = hf_load(&h, "t.lua", code);
  if (ok != !h.diags.n_errors)
    complain(&h, code, "success and errors do not agree");
  for (uint32_t i = 0; i < h.diags.list.n; i++) {
    const struct diag *d = &h.diags.list.at[i];
    if (d->loc.line != 2 || !d->loc.col)
      complain(&h, code, "the place is not the kernel's");
    bool named = has_word(d->message, e->name) || strstr(d->message, "writes nothing") ||
                 (str_eq(e->name, "cases") && has_word(d->message, "case"));
    if (!named && i == 0)
      complain(&h, code, "the field is not named");
    for (size_t w = 0; w < sizeof poor / sizeof *poor; w++)
      if (strstr(d->message, poor[w]))
        complain(&h, code, poor[w]);
  }
  bool fits = of_type(e->signature) & k->is;
  if (ok && !fits) {
    print_message("POOR accepts %s\n", code);
    bad = true;
  }
  if (show)
    print_message("%s = %s %s%s", e->name, k->text, ok ? "ACCEPTED" : "", ok ? "\n" : hf_diags(&h));
  n_accepted += ok;
  n_refused += !ok;
  hf_free(&h);
}

static void test_fields(void **state) {
  (void)state;
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < N_KINDS; k++)
      if ((e[i].owner == DSL_OF_description || e[i].owner == DSL_OF_case) &&
          strchr(kinds[k].places, 'f'))
        wrong_field(&e[i], &kinds[k]);
  print_message("%u accepted, %u refused\n", n_accepted, n_refused);
  assert_false(bad);
}

int main(void) {
  show = getenv("KILN_SHOW") && *getenv("KILN_SHOW");
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions),
                                     cmocka_unit_test(test_operators),
                                     cmocka_unit_test(test_fields)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
