/* Lua patterns: string.find, match, gmatch, gsub.
 *
 * A backtracking matcher that charges a step for every state it enters, every byte it compares and
 * every member of a set it looks at: a hopeless pattern ends at the step limit. Recursion is
 * bounded as in stock Lua. gmatch finds one match per call; where it stands is a field of a Lua
 * table, journalled like any other, so a discarded pass of a device region moves it back. */
#include "frontend/lib.h"

#include <stddef.h>
#include <string.h>

#define CAPTURES_MAX 32
#define DEPTH_MAX    200
/* Steps are handed to the host in portions. */
#define CHARGE_EVERY 1024

#define CAP_OPEN     (-1) /* begun, not closed */
#define CAP_POSITION (-2) /* `()` */

struct match {
  lua_State *L;
  const char *src, *src_end, *pat_end;
  uint32_t steps; /* not yet charged */
  int depth;      /* recursions left */
  int n_captures;
  struct {
    const char *start;
    ptrdiff_t len; /* or CAP_OPEN, CAP_POSITION */
  } cap[CAPTURES_MAX];
};

static const char *match_here(struct match *m, const char *s, const char *p);

static void pay(struct match *m) {
  fe_lib_charge(m->L, m->steps);
  m->steps = 0;
}

static void step(struct match *m) {
  if (++m->steps >= CHARGE_EVERY)
    pay(m);
}

static void begin_match(struct match *m) {
  m->depth = DEPTH_MAX;
  m->n_captures = 0;
}

/* ---- single characters ---- */

static unsigned char byte_at(const char *s) {
  return (unsigned char)*s;
}

static bool between(unsigned char c, char lo, char hi) {
  return c >= (unsigned char)lo && c <= (unsigned char)hi;
}

static bool is_alpha(unsigned char c) {
  return between(c, 'a', 'z') || between(c, 'A', 'Z');
}

/* Is c in the class that the letter after a `%` names? Any other character stands for itself. */
static bool in_class(unsigned char c, unsigned char letter) {
  bool in;
  switch (letter | 0x20) { /* an upper-case letter is the complement */
  case 'a': in = is_alpha(c); break;
  case 'c': in = c < 32 || c == 127; break;
  case 'd': in = between(c, '0', '9'); break;
  case 'g': in = c > 32 && c < 127; break;
  case 'l': in = between(c, 'a', 'z'); break;
  case 'p': in = c > 32 && c < 127 && !is_alpha(c) && !between(c, '0', '9'); break;
  case 's': in = c == ' ' || between(c, '\t', '\r'); break;
  case 'u': in = between(c, 'A', 'Z'); break;
  case 'w': in = is_alpha(c) || between(c, '0', '9'); break;
  case 'x': in = between(c, '0', '9') || between(c, 'a', 'f') || between(c, 'A', 'F'); break;
  case 'z': in = c == 0; break; /* older Lua's way to write it */
  default: return letter == c;
  }
  return between(letter, 'A', 'Z') ? !in : in;
}

/* After the single-character item at p. */
static const char *item_end(struct match *m, const char *p) {
  char c = *p++;
  if (c == '%') {
    if (p == m->pat_end)
      luaL_error(m->L, "malformed pattern (ends with '%%')");
    return p + 1;
  }
  if (c != '[')
    return p;
  if (*p == '^')
    p++;
  do { /* a `]` that comes first is a member */
    if (p == m->pat_end)
      luaL_error(m->L, "malformed pattern (missing ']')");
    step(m);
    if (*p++ == '%' && p < m->pat_end)
      p++; /* whatever it is, `]` included */
  } while (*p != ']');
  return p + 1;
}

/* Is c in the set from the `[` at p to the `]` at end? */
static bool in_set(struct match *m, unsigned char c, const char *p, const char *end) {
  bool found = true;
  if (p[1] == '^') {
    found = false;
    p++;
  }
  while (++p < end) {
    step(m);
    if (*p == '%') {
      p++;
      if (in_class(c, byte_at(p)))
        return found;
    } else if (p[1] == '-' && p + 2 < end) {
      if (byte_at(p) <= c && c <= byte_at(p + 2))
        return found;
      p += 2;
    } else if (byte_at(p) == c) {
      return found;
    }
  }
  return !found;
}

/* Does the item from p to end match the character at s? */
static bool matches_one(struct match *m, const char *s, const char *p, const char *end) {
  step(m);
  if (s >= m->src_end)
    return false;
  switch (*p) {
  case '.': return true;
  case '%': return in_class(byte_at(s), byte_at(p + 1));
  case '[': return in_set(m, byte_at(s), p, end - 1);
  default: return *p == *s;
  }
}

/* ---- items of more than one character ---- */

/* %bxy with p after the `b`. */
static const char *match_balanced(struct match *m, const char *s, const char *p) {
  if (p >= m->pat_end - 1)
    luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
  if (s >= m->src_end || *s != p[0])
    return NULL;
  size_t open = 1;
  while (++s < m->src_end) {
    step(m);
    if (*s == p[1]) { /* first: x may equal y */
      if (--open == 0)
        return s + 1;
    } else if (*s == p[0]) {
      open++;
    }
  }
  return NULL;
}

/* As many as possible, then fewer. */
static const char *match_greedy(struct match *m, const char *s, const char *p, const char *end) {
  ptrdiff_t n = 0;
  while (matches_one(m, s + n, p, end))
    n++;
  for (; n >= 0; n--) {
    const char *to = match_here(m, s + n, end + 1);
    if (to)
      return to;
  }
  return NULL;
}

/* As few as possible. */
static const char *match_lazy(struct match *m, const char *s, const char *p, const char *end) {
  for (;;) {
    const char *to = match_here(m, s, end + 1);
    if (to)
      return to;
    if (!matches_one(m, s, p, end))
      return NULL;
    s++;
  }
}

static const char *open_capture(struct match *m, const char *s, const char *p, ptrdiff_t len) {
  if (m->n_captures >= CAPTURES_MAX)
    luaL_error(m->L, "too many captures");
  m->cap[m->n_captures].start = s;
  m->cap[m->n_captures].len = len;
  m->n_captures++;
  const char *to = match_here(m, s, p);
  if (!to)
    m->n_captures--;
  return to;
}

static const char *close_capture(struct match *m, const char *s, const char *p) {
  int i = m->n_captures - 1;
  while (i >= 0 && m->cap[i].len != CAP_OPEN)
    i--;
  if (i < 0)
    luaL_error(m->L, "invalid pattern capture");
  m->cap[i].len = s - m->cap[i].start;
  const char *to = match_here(m, s, p);
  if (!to)
    m->cap[i].len = CAP_OPEN;
  return to;
}

/* %1 ... %9: what that capture matched, once more. */
static const char *match_capture(struct match *m, const char *s, unsigned char digit) {
  int i = digit - '1';
  if (i < 0 || i >= m->n_captures || m->cap[i].len == CAP_OPEN)
    luaL_error(m->L, "invalid capture index %%%d", i + 1);
  ptrdiff_t n = m->cap[i].len;
  if (n < 0) /* a position: never equal to text */
    return NULL;
  m->steps += (uint32_t)(n / 16);
  step(m);
  if (m->src_end - s >= n && memcmp(m->cap[i].start, s, (size_t)n) == 0)
    return s + n;
  return NULL;
}

/* %f[set], p after the `f`: returns what follows the set, or NULL where there is no such border. */
static const char *match_frontier(struct match *m, const char *s, const char *p) {
  if (p >= m->pat_end || *p != '[')
    luaL_error(m->L, "missing '[' after '%%f' in pattern");
  const char *end = item_end(m, p);
  unsigned char before = s == m->src ? 0 : byte_at(s - 1);
  unsigned char here = s == m->src_end ? 0 : byte_at(s);
  return !in_set(m, before, p, end - 1) && in_set(m, here, p, end - 1) ? end : NULL;
}

/* Where the pattern from p on, matched at s, ends; NULL if it does not match. */
static const char *match_here(struct match *m, const char *s, const char *p) {
  if (m->depth-- == 0)
    luaL_error(m->L, "pattern too complex");
  while (s && p != m->pat_end) {
    step(m);
    if (*p == '(') {
      s = p[1] == ')' ? open_capture(m, s, p + 2, CAP_POSITION)
                      : open_capture(m, s, p + 1, CAP_OPEN);
      break;
    }
    if (*p == ')') {
      s = close_capture(m, s, p + 1);
      break;
    }
    if (*p == '$' && p + 1 == m->pat_end) {
      s = s == m->src_end ? s : NULL;
      break;
    }
    if (*p == '%' && p[1] == 'b') {
      s = match_balanced(m, s, p + 2);
      p += 4;
      continue;
    }
    if (*p == '%' && p[1] == 'f') {
      p = match_frontier(m, s, p + 2);
      s = p ? s : NULL;
      continue;
    }
    if (*p == '%' && between(byte_at(p + 1), '0', '9')) {
      s = match_capture(m, s, byte_at(p + 1));
      p += 2;
      continue;
    }
    const char *end = item_end(m, p);
    char suffix = end < m->pat_end ? *end : 0;
    bool one = matches_one(m, s, p, end);
    if (!one && (suffix == '*' || suffix == '-' || suffix == '?')) {
      p = end + 1;
      continue;
    }
    if (one && (suffix == '*' || suffix == '+')) {
      s = match_greedy(m, suffix == '+' ? s + 1 : s, p, end);
      break;
    }
    if (one && suffix == '-') {
      s = match_lazy(m, s, p, end);
      break;
    }
    const char *rest = one && suffix == '?' ? match_here(m, s + 1, end + 1) : NULL;
    if (rest) {
      s = rest;
      break;
    }
    if (suffix == '?') {
      p = end + 1;
    } else {
      s = one ? s + 1 : NULL;
      p = end;
    }
  }
  m->depth++;
  return s;
}

/* ---- captures as values ---- */

/* Pushes capture i; with no captures at all, capture 0 is the whole match from s to e. */
static void push_capture(struct match *m, int i, const char *s, const char *e) {
  if (i >= m->n_captures) {
    if (i != 0)
      luaL_error(m->L, "invalid capture index %%%d", i + 1);
    lua_pushlstring(m->L, s, (size_t)(e - s));
  } else if (m->cap[i].len == CAP_POSITION) {
    lua_pushinteger(m->L, m->cap[i].start - m->src + 1);
  } else {
    if (m->cap[i].len == CAP_OPEN)
      luaL_error(m->L, "unfinished capture");
    lua_pushlstring(m->L, m->cap[i].start, (size_t)m->cap[i].len);
  }
}

/* Pushes all captures, or the whole match if there are none and `whole`. */
static int push_captures(struct match *m, const char *s, const char *e, bool whole) {
  int n = m->n_captures == 0 && whole ? 1 : m->n_captures;
  fe_lib_need_stack(m->L, n, "too many captures");
  for (int i = 0; i < n; i++)
    push_capture(m, i, s, e);
  return n;
}

/* ---- find and match ---- */

static bool is_plain(const char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i] && strchr("^$*+?.([%-", p[i]))
      return false;
  return true;
}

/* The first place of `what` in s ... end, or NULL. */
static const char *find_plain(struct match *m, const char *s, const char *end, const char *what,
                              size_t n) {
  if (n == 0)
    return s;
  while ((size_t)(end - s) >= n) {
    const char *at = memchr(s, *what, (size_t)(end - s) - n + 1);
    m->steps += (uint32_t)((at ? at - s : end - s) / 16 + (ptrdiff_t)(n / 16));
    step(m);
    if (!at)
      return NULL;
    if (memcmp(at, what, n) == 0)
      return at;
    s = at + 1;
  }
  return NULL;
}

/* A start position as an offset from 0. */
static size_t start_offset(lua_Integer pos, size_t n) {
  if (pos > 0)
    return (size_t)pos - 1;
  if (pos == 0 || pos < -(lua_Integer)n)
    return 0;
  return n + (size_t)pos;
}

static int find_or_match(lua_State *L, bool find) {
  size_t n, n_pat;
  const char *src = fe_lib_arg_str(L, 1, &n), *pat = fe_lib_arg_str(L, 2, &n_pat);
  size_t init = start_offset(fe_lib_arg_opt_int(L, 3, 1), n);
  struct match m = {.L = L, .src = src, .src_end = src + n, .pat_end = pat + n_pat, .steps = 1};
  if (init > n) {
    luaL_pushfail(L);
    return 1;
  }
  m.steps += (uint32_t)(n_pat / 16);
  if (find && (lua_toboolean(L, 4) || is_plain(pat, n_pat))) {
    const char *at = find_plain(&m, src + init, m.src_end, pat, n_pat);
    pay(&m);
    if (at) {
      lua_pushinteger(L, at - src + 1);
      lua_pushinteger(L, at - src + (lua_Integer)n_pat);
      return 2;
    }
  } else {
    bool anchored = n_pat > 0 && *pat == '^';
    pat += anchored;
    const char *s = src + init;
    do {
      begin_match(&m);
      const char *e = match_here(&m, s, pat);
      if (e) {
        pay(&m);
        if (!find)
          return push_captures(&m, s, e, true);
        lua_pushinteger(L, s - src + 1);
        lua_pushinteger(L, e - src);
        return push_captures(&m, s, e, false) + 2;
      }
    } while (s++ < m.src_end && !anchored);
    pay(&m);
  }
  luaL_pushfail(L);
  return 1;
}

static int str_find(lua_State *L) {
  return find_or_match(L, true);
}

static int str_match(lua_State *L) {
  return find_or_match(L, false);
}

/* ---- gmatch ---- */

/* The iterator: upvalues 2 the text, 3 the pattern, 4 {offset to go on from, offset where the last
 * match ended, or -1}. */
static int gmatch_step(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  lua_settop(L, 0);
  lua_pushvalue(L, lua_upvalueindex(4));
  lua_Integer state[2];
  for (int i = 0; i < 2; i++) {
    lua_pushinteger(L, i + 1);
    fe_lib_get(L, host, 1);
    state[i] = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  size_t n, n_pat;
  const char *src = lua_tolstring(L, lua_upvalueindex(2), &n);
  const char *pat = lua_tolstring(L, lua_upvalueindex(3), &n_pat);
  struct match m = {.L = L, .src = src, .src_end = src + n, .pat_end = pat + n_pat};
  if (state[0] < 0 || state[0] > (lua_Integer)n)
    return 0;
  for (const char *s = src + state[0]; s <= m.src_end; s++) {
    begin_match(&m);
    const char *e = match_here(&m, s, pat);
    if (e && e - src != state[1]) {
      pay(&m);
      for (int i = 0; i < 2; i++) {
        lua_pushinteger(L, i + 1);
        lua_pushinteger(L, e - src);
        fe_lib_set(L, host, 1);
      }
      return push_captures(&m, s, e, true);
    }
  }
  pay(&m);
  return 0;
}

static int str_gmatch(lua_State *L) {
  const struct fe_lib_host *host = fe_lib_of(L);
  size_t n, n_pat;
  fe_lib_arg_str(L, 1, &n);
  fe_lib_arg_str(L, 2, &n_pat);
  size_t init = start_offset(fe_lib_arg_opt_int(L, 3, 1), n);
  if (init > n)
    init = n + 1;
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_createtable(L, 2, 0);
  host->born(host->user, L, lua_gettop(L));
  lua_pushinteger(L, (lua_Integer)init);
  lua_rawseti(L, -2, 1);
  lua_pushinteger(L, -1);
  lua_rawseti(L, -2, 2);
  lua_pushcclosure(L, gmatch_step, 4);
  return 1;
}

/* ---- gsub ---- */

/* Adds the replacement text at 3 with its %0 ... %9 filled in. */
static void add_template(struct match *m, luaL_Buffer *out, const char *s, const char *e) {
  size_t n;
  const char *p = lua_tolstring(m->L, 3, &n), *end = p + n;
  while (p < end) {
    const char *escape = memchr(p, '%', (size_t)(end - p));
    luaL_addlstring(out, p, (size_t)((escape ? escape : end) - p));
    m->steps += (uint32_t)(((escape ? escape : end) - p) / 16);
    step(m);
    if (!escape)
      return;
    p = escape + 1;
    if (*p == '%') {
      luaL_addchar(out, '%');
    } else if (*p == '0') {
      luaL_addlstring(out, s, (size_t)(e - s));
    } else if (between(byte_at(p), '1', '9')) {
      push_capture(m, *p - '1', s, e);
      luaL_tolstring(m->L, -1, NULL); /* a position becomes text */
      lua_remove(m->L, -2);
      luaL_addvalue(out);
    } else {
      luaL_error(m->L, "invalid use of '%%' in replacement string");
    }
    p++;
  }
}

/* Adds what the match from s to e is replaced by; false if that is itself. */
static bool add_replacement(struct match *m, luaL_Buffer *out, const char *s, const char *e) {
  lua_State *L = m->L;
  const struct fe_lib_host *host = fe_lib_of(L);
  int type = lua_type(L, 3);
  if (type != LUA_TFUNCTION && type != LUA_TTABLE) {
    add_template(m, out, s, e);
    return true;
  }
  pay(m); /* others may run now */
  if (type == LUA_TFUNCTION) {
    lua_pushvalue(L, 3);
    int n = push_captures(m, s, e, true);
    lua_call(L, n, 1);
  } else {
    push_capture(m, 0, s, e);
    fe_lib_get(L, host, 3);
  }
  if (!fe_lib_is_dev(L, -1)) {
    if (!lua_toboolean(L, -1)) {
      lua_pop(L, 1);
      luaL_addlstring(out, s, (size_t)(e - s));
      return false;
    }
    if (lua_isstring(L, -1)) {
      luaL_addvalue(out);
      return true;
    }
  }
  luaL_error(L, "invalid replacement value (a %s)",
             fe_lib_is_dev(L, -1) ? fe_lib_dev_name(L, host, lua_gettop(L)) : luaL_typename(L, -1));
  return false;
}

static int str_gsub(lua_State *L) {
  size_t n, n_pat;
  const char *src = fe_lib_arg_str(L, 1, &n), *pat = fe_lib_arg_str(L, 2, &n_pat);
  const char *last = NULL; /* end of the last match */
  int type = lua_type(L, 3);
  lua_Integer max = fe_lib_arg_opt_int(L, 4, (lua_Integer)n + 1), count = 0;
  bool anchored = n_pat > 0 && *pat == '^', changed = false;
  if (type != LUA_TNUMBER && type != LUA_TSTRING && type != LUA_TFUNCTION && type != LUA_TTABLE)
    fe_lib_type_error(L, 3, "string/function/table");
  if (type == LUA_TNUMBER)
    lua_tolstring(L, 3, NULL);
  struct match m = {.L = L, .src = src, .src_end = src + n, .pat_end = pat + n_pat, .steps = 1};
  pat += anchored;
  luaL_Buffer out;
  luaL_buffinit(L, &out);
  const char *s = src;
  while (count < max) {
    begin_match(&m);
    const char *e = match_here(&m, s, pat);
    if (e && e != last) {
      count++;
      changed |= add_replacement(&m, &out, s, e);
      s = last = e;
    } else if (s < m.src_end) {
      luaL_addchar(&out, *s++);
    } else {
      break;
    }
    if (anchored)
      break;
  }
  m.steps += (uint32_t)(n / 16);
  pay(&m);
  if (changed) {
    luaL_addlstring(&out, s, (size_t)(m.src_end - s));
    luaL_pushresult(&out);
  } else {
    lua_pushvalue(L, 1);
  }
  lua_pushinteger(L, count);
  return 2;
}

void fe_lib_add_pattern(lua_State *L, const struct fe_lib_host *host) {
  static const luaL_Reg functions[] = {
      {"find", str_find},   {"gmatch", str_gmatch}, {"gsub", str_gsub},
      {"match", str_match}, {NULL, NULL},
  };
  fe_lib_register(L, host, functions);
}
