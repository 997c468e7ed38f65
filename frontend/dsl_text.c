/* The table of the language (dsl.def) as text: stubs for the Lua language server, and the tables of
 * docs/reference.md.
 *
 * Types of signatures are those of the language server; value (a tile or device scalar in a body,
 * an array in an oracle), tensor, dtype, arg, kernel, description, case, rng and num (a value or a
 * number) get the prefix `kiln.`; T is generic over num. */
#include "frontend/dsl.h"

#include <ctype.h>

static const char *const classes[] = {"value", "tensor",      "dtype", "arg", "kernel",
                                      "case",  "description", "rng",   "num"};

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* A type with `kiln.` before the words that are classes; a word before a colon is a name. */
static void put_type(struct strbuf *out, const char *p, size_t n) {
  const char *end = p + n;
  while (p < end) {
    size_t len = 0;
    while (p + len < end && is_word(p[len]))
      len++;
    if (!len) {
      sb_putc(out, *p++);
      continue;
    }
    const char *after = p + len < end && p[len] == '?' ? p + len + 1 : p + len;
    bool name = after < end && *after == ':';
    for (size_t i = 0; !name && i < sizeof classes / sizeof *classes; i++)
      if (strlen(classes[i]) == len && memcmp(classes[i], p, len) == 0)
        sb_puts(out, "kiln.");
    sb_put(out, p, len);
    p += len;
  }
}

/* ---- signatures ---- */

struct part {
  const char *s;
  size_t n;
};

/* The next "name: type" of the list at *p, which is moved past it; false at the closing bracket. */
static bool next_param(const char **p, struct part *name, struct part *type, bool *optional) {
  const char *s = *p;
  while (*s == ' ' || *s == ',')
    s++;
  if (*s == ')' || !*s)
    return false;
  name->s = s;
  while (*s != ':' && *s != '?')
    s++;
  name->n = (size_t)(s - name->s);
  *optional = *s == '?';
  s += *optional ? 3 : 2;
  type->s = s;
  for (int depth = 0; depth || (*s != ',' && *s != ')'); s++)
    depth += (*s == '(' || *s == '{' || *s == '<') - (*s == ')' || *s == '}' || *s == '>');
  type->n = (size_t)(s - type->s);
  *p = s;
  return true;
}

/* What follows "): ", or "". */
static const char *result_of(const char *signature) {
  const char *p = signature + 1;
  struct part name, type;
  bool optional;
  while (next_param(&p, &name, &type, &optional))
    continue;
  p += strcspn(p, ")");
  return str_starts(p, "): ") ? p + 3 : "";
}

/* "x, y, ..." or, for people, "x [, y]". */
static void put_names(struct strbuf *out, const char *signature, bool brackets) {
  const char *p = signature + 1;
  struct part name, type;
  bool optional, first = true;
  for (; next_param(&p, &name, &type, &optional); first = false) {
    const char *open = brackets && optional ? first ? "[" : " [, " : first ? "" : ", ";
    sb_puts(out, open);
    sb_put(out, name.s, name.n);
    if (brackets && optional)
      sb_putc(out, ']');
  }
}

/* "fun(self: kiln.value, x: kiln.num): kiln.value" */
static void put_function_type(struct strbuf *out, const char *signature, const char *self) {
  sb_printf(out, "fun(self: %s%s", self, signature[1] == ')' ? "" : ", ");
  put_type(out, signature + 1, strlen(signature + 1));
}

/* ---- stubs ---- */

static const struct dsl_entry *find(enum dsl_owner owner, const char *name) {
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  for (uint32_t i = 0; i < n; i++)
    if (e[i].owner == owner && str_eq(e[i].name, name))
      return &e[i];
  return NULL;
}

static bool is_function(const struct dsl_entry *e) {
  return e->signature[0] == '(' && e->on[0];
}

static void put_function(struct strbuf *out, const struct dsl_entry *e, const char *object) {
  sb_printf(out, "\n---%s\n", e->text);
  if (*e->example)
    sb_printf(out, "---\n---Example: `%s`\n", e->example);
  const char *p = e->signature + 1, *result = result_of(e->signature);
  struct part name, type;
  bool optional, generic = str_eq(result, "T");
  if (generic)
    sb_puts(out, "---@generic T: kiln.num\n");
  while (next_param(&p, &name, &type, &optional)) {
    sb_puts(out, "---@param ");
    sb_put(out, name.s, name.n);
    sb_puts(out, optional ? "? " : " ");
    put_type(out, type.s, type.n);
    sb_putc(out, '\n');
  }
  if (*result) {
    sb_puts(out, "---@return ");
    put_type(out, result, strlen(result));
    sb_putc(out, '\n');
  }
  const struct dsl_entry *other = e->owner == DSL_OF_tile ? find(DSL_OF_array, e->name) : NULL;
  if (other && !str_eq(other->signature, e->signature)) {
    sb_puts(out, "---@overload ");
    put_function_type(out, other->signature, "kiln.value");
    sb_putc(out, '\n');
  }
  sb_printf(out, "function %s%s(", object, e->name);
  put_names(out, e->signature, false);
  sb_puts(out, ") end\n");
}

/* A class with the fields of its owners. */
static void put_class(struct strbuf *out, const char *name, const char *text, enum dsl_owner a,
                      enum dsl_owner b) {
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  sb_printf(out, "\n---%s\n---@class kiln.%s\n", text, name);
  for (uint32_t i = 0; i < n; i++) {
    if (e[i].fn || (e[i].owner != a && e[i].owner != b) ||
        (e[i].owner == b && a != b && find(a, e[i].name)))
      continue;
    size_t len = strlen(e[i].signature);
    bool optional = len && e[i].signature[len - 1] == '?';
    sb_printf(out, "---@field %s%s ", e[i].name, optional ? "?" : "");
    put_type(out, e[i].signature, len - optional);
    sb_printf(out, " %s\n", e[i].text);
  }
}

static void put_operators(struct strbuf *out) {
  static const char *const binary[] = {"add",  "sub", "mul",  "div", "mod", "idiv",
                                       "band", "bor", "bxor", "shl", "shr"};
  for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
    sb_printf(out, "---@operator %s(kiln.num): kiln.value\n", binary[i]);
  sb_puts(out, "---@operator unm: kiln.value\n---@operator bnot: kiln.value\n");
}

static void put_methods(struct strbuf *out, enum dsl_owner a, enum dsl_owner b,
                        const char *object) {
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  char prefix[32];
  size_t len = strlen(object);
  memcpy(prefix, object, len);
  memcpy(prefix + len, ":", 2);
  sb_printf(out, "local %s = {}\n", object);
  for (uint32_t i = 0; i < n; i++)
    if (is_function(&e[i]) && (e[i].owner == a || (e[i].owner == b && !find(a, e[i].name))))
      put_function(out, &e[i], prefix);
}

void fe_language_stubs(struct strbuf *out) {
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  sb_puts(out, "---@meta kiln\n"
               "-- The kernel language, for editors with the Lua language server. Written by\n"
               "-- `kiln stubs`; put this file into the folder of the kernels.\n\n"
               "---@alias kiln.num kiln.value|number\n"
               "\n---A type of elements: a value of its own, and a function that casts.\n"
               "---@class kiln.dtype\n"
               "---@overload fun(x: kiln.num|boolean): kiln.value\n"
               "\n---A declaration of an argument.\n---@class kiln.arg\n");
  put_class(out, "value", "A tile or device scalar in a body, an array in an oracle.", DSL_OF_tile,
            DSL_OF_array);
  put_operators(out);
  put_methods(out, DSL_OF_tile, DSL_OF_array, "Value");
  put_class(out, "tensor: kiln.value", "An argument in a body: a tensor, or a scalar.",
            DSL_OF_tensor, DSL_OF_tensor);
  put_methods(out, DSL_OF_tensor, DSL_OF_tensor, "Tensor");
  put_class(out, "rng", "Random numbers for `inputs`.", DSL_OF_rng, DSL_OF_rng);
  put_methods(out, DSL_OF_rng, DSL_OF_rng, "Rng");
  put_class(out, "kernel", "A kernel.", DSL_OF_kernel, DSL_OF_kernel);
  put_methods(out, DSL_OF_kernel, DSL_OF_kernel, "Kernel");
  put_class(out, "case", "An entry of `cases`.", DSL_OF_case, DSL_OF_case);
  put_class(out, "description", "What `kernel` takes.", DSL_OF_description, DSL_OF_description);
  sb_putc(out, '\n');
  for (int t = 0; t < DT_COUNT; t++)
    sb_printf(out, "---@type kiln.dtype\n%s = nil\n", dtype_name((enum dtype)t));
  for (uint32_t i = 0; i < n; i++) {
    if (e[i].owner != DSL_OF_global)
      continue;
    if (is_function(&e[i])) {
      put_function(out, &e[i], "");
      continue;
    }
    if (e[i].fn) /* refused wherever it is called */
      continue;
    sb_printf(out, "\n---%s\n---@type ", e[i].text);
    put_type(out, e[i].signature, strlen(e[i].signature));
    sb_printf(out, "\n%s = nil\n", e[i].name);
  }
}

/* ---- reference ---- */

static void put_on(struct strbuf *out, const char *on) {
  static const struct {
    char letter;
    const char *text;
  } words[] = {{'b', "tiles"},  {'g', "dims"},    {'o', "arrays"},
               {'i', "inputs"}, {'n', "numbers"}, {'f', "file"}};
  bool first = true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strchr(on, words[i].letter)) {
      sb_printf(out, "%s%s", first ? "" : ", ", words[i].text);
      first = false;
    }
}

static const char *object_of(enum dsl_owner owner) {
  switch (owner) {
  case DSL_OF_tile:
  case DSL_OF_array: return "x";
  case DSL_OF_tensor: return "t";
  case DSL_OF_rng: return "rng";
  case DSL_OF_kernel: return "k";
  case DSL_OF_part:
  case DSL_OF_global:
  case DSL_OF_description:
  case DSL_OF_case: break;
  }
  return NULL;
}

void fe_language_reference(struct strbuf *out) {
  uint32_t n;
  const struct dsl_entry *e = dsl_entries(&n);
  sb_puts(
      out,
      "# Language reference\n\n"
      "Every function, method and value of the kernel language. [dsl.md](dsl.md) is the guide; "
      "this\npage is written from the table `frontend/dsl.def`, and every example is run by the "
      "tests. Column\n`on`: tiles (and device scalars) in a body, dims in a grid function, "
      "arrays in oracles and inputs,\n`inputs` alone, plain numbers anywhere, file level.\n");
  for (uint32_t i = 0; i < n; i++) {
    if (e[i].owner == DSL_OF_part) {
      bool fields = i + 1 < n && !e[i + 1].on[0] && object_of(e[i + 1].owner) == NULL &&
                    e[i + 1].owner != DSL_OF_global;
      sb_printf(out, "\n## %s\n\n", e[i].name);
      if (*e[i].text)
        sb_printf(out, "%s.\n\n", e[i].text);
      sb_puts(out, fields ? "| field | what |\n|---|---|\n"
                          : "| name | on | what | example |\n|---|---|---|---|\n");
      continue;
    }
    if (e[i].owner == DSL_OF_description || e[i].owner == DSL_OF_case) {
      sb_printf(out, "| `%s` | %s |\n", e[i].name, e[i].text);
      continue;
    }
    const char *object = object_of(e[i].owner);
    sb_puts(out, "| `");
    if (object)
      sb_printf(out, "%s%s", object, is_function(&e[i]) ? ":" : ".");
    sb_puts(out, e[i].name);
    if (is_function(&e[i])) {
      sb_putc(out, '(');
      put_names(out, e[i].signature, true);
      sb_putc(out, ')');
    }
    sb_puts(out, "` | ");
    put_on(out, e[i].on);
    sb_printf(out, " | %s | ", e[i].text);
    if (*e[i].example)
      sb_printf(out, "`%s` |\n", e[i].example);
    else
      sb_puts(out, "|\n");
  }
}
