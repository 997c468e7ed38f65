/* The math library. Device values have functions of their own in the DSL, which the refusals name;
 * random numbers are refused, since a kernel must trace the same way each time. */
#include "frontend/lib.h"

#include <float.h>
#include <limits.h>
#include <math.h>

#define NO_DEVICE_FUNCTION "there is no device function for it"
#define PI                 3.141592653589793238462643383279502884

/* Pushes a float as an integer if it is one that fits. */
static void push_rounded(lua_State *L, double x) {
  lua_Integer i;
  if (lua_numbertointeger(x, &i))
    lua_pushinteger(L, i);
  else
    lua_pushnumber(L, x);
}

static int math_floor(lua_State *L) {
  fe_lib_no_dev(L, "math.floor",
                "integers are whole already, and there is no device function for floats");
  if (lua_isinteger(L, 1))
    lua_settop(L, 1);
  else
    push_rounded(L, floor(fe_lib_arg_num(L, 1)));
  return 1;
}

static int math_ceil(lua_State *L) {
  fe_lib_no_dev(
      L, "math.ceil",
      "integers are whole already (see cdiv), and there is no device function for floats");
  if (lua_isinteger(L, 1))
    lua_settop(L, 1);
  else
    push_rounded(L, ceil(fe_lib_arg_num(L, 1)));
  return 1;
}

static int math_abs(lua_State *L) {
  fe_lib_no_dev(L, "math.abs", "use abs");
  if (lua_isinteger(L, 1)) {
    lua_Integer i = lua_tointeger(L, 1);
    lua_pushinteger(L, i < 0 ? (lua_Integer)(0u - (lua_Unsigned)i) : i);
  } else {
    lua_pushnumber(L, fabs(fe_lib_arg_num(L, 1)));
  }
  return 1;
}

static int math_fmod(lua_State *L) {
  fe_lib_no_dev(L, "math.fmod", "use %");
  if (lua_isinteger(L, 1) && lua_isinteger(L, 2)) {
    lua_Integer a = lua_tointeger(L, 1), b = lua_tointeger(L, 2);
    if (b == 0)
      return fe_lib_arg_error(L, 2, "zero");
    lua_pushinteger(L, b == -1 ? 0 : a % b); /* minint % -1 overflows */
  } else {
    double b = fe_lib_arg_num(L, 2); /* complained about first, as stock Lua is compiled */
    lua_pushnumber(L, fmod(fe_lib_arg_num(L, 1), b));
  }
  return 1;
}

static int math_modf(lua_State *L) {
  fe_lib_no_dev(L, "math.modf", NO_DEVICE_FUNCTION);
  if (lua_isinteger(L, 1)) {
    lua_settop(L, 1);
    lua_pushnumber(L, 0);
  } else {
    double x = fe_lib_arg_num(L, 1), whole = x < 0 ? ceil(x) : floor(x);
    push_rounded(L, whole);
    lua_pushnumber(L, x == whole ? 0.0 : x - whole); /* inf - inf would be a nan */
  }
  return 2;
}

static int math_log(lua_State *L) {
  fe_lib_no_dev(L, "math.log", "use log or log2");
  double x = fe_lib_arg_num(L, 1);
  if (lua_isnoneornil(L, 2)) {
    x = log(x);
  } else {
    double base = fe_lib_arg_num(L, 2);
    x = base == 2.0 ? log2(x) : base == 10.0 ? log10(x) : log(x) / log(base);
  }
  lua_pushnumber(L, x);
  return 1;
}

static int math_atan(lua_State *L) {
  fe_lib_no_dev(L, "math.atan", NO_DEVICE_FUNCTION);
  double y = fe_lib_arg_num(L, 1);
  lua_pushnumber(L, atan2(y, lua_isnoneornil(L, 2) ? 1 : fe_lib_arg_num(L, 2)));
  return 1;
}

#define ONE_ARGUMENT(name, expression, advice)                                                     \
  static int math_##name(lua_State *L) {                                                           \
    fe_lib_no_dev(L, "math." #name, advice);                                                       \
    double x = fe_lib_arg_num(L, 1);                                                               \
    lua_pushnumber(L, expression);                                                                 \
    return 1;                                                                                      \
  }

ONE_ARGUMENT(sqrt, sqrt(x), "use sqrt")
ONE_ARGUMENT(exp, exp(x), "use exp")
ONE_ARGUMENT(sin, sin(x), "use sin")
ONE_ARGUMENT(cos, cos(x), "use cos")
ONE_ARGUMENT(tan, tan(x), NO_DEVICE_FUNCTION)
ONE_ARGUMENT(asin, asin(x), NO_DEVICE_FUNCTION)
ONE_ARGUMENT(acos, acos(x), NO_DEVICE_FUNCTION)
ONE_ARGUMENT(deg, x *(180.0 / PI), "multiply by 180 / math.pi")
ONE_ARGUMENT(rad, x *(PI / 180.0), "multiply by math.pi / 180")
/* Not in the manual, but in the distributions' Lua 5.4. */
ONE_ARGUMENT(sinh, sinh(x), NO_DEVICE_FUNCTION)
ONE_ARGUMENT(cosh, cosh(x), NO_DEVICE_FUNCTION)
ONE_ARGUMENT(tanh, tanh(x), "use tanh")
ONE_ARGUMENT(log10, log10(x), "use log2(x) * (math.log(2) / math.log(10))")

static int math_pow(lua_State *L) {
  fe_lib_no_dev(L, "math.pow", "use ^");
  double x = fe_lib_arg_num(L, 1);
  lua_pushnumber(L, pow(x, fe_lib_arg_num(L, 2)));
  return 1;
}

static int math_ldexp(lua_State *L) {
  fe_lib_no_dev(L, "math.ldexp", "multiply by a power of 2");
  double x = fe_lib_arg_num(L, 1);
  lua_pushnumber(L, ldexp(x, (int)fe_lib_arg_int(L, 2)));
  return 1;
}

static int math_frexp(lua_State *L) {
  fe_lib_no_dev(L, "math.frexp", NO_DEVICE_FUNCTION);
  int exponent;
  lua_pushnumber(L, frexp(fe_lib_arg_num(L, 1), &exponent));
  lua_pushinteger(L, exponent);
  return 2;
}

/* a < b as the operator has it: not only for numbers, as in stock Lua. */
static bool less(lua_State *L, int a, int b, const char *function) {
  const struct fe_lib_host *host = fe_lib_of(L);
  int type = lua_type(L, a);
  if (type == lua_type(L, b) && (type == LUA_TNUMBER || type == LUA_TSTRING))
    return lua_compare(L, a, b, LUA_OPLT);
  return host->less(host->user, L, a, b, function);
}

/* The largest (sign 1) or smallest (-1) argument, the first of equal ones. */
static int extreme(lua_State *L, int sign) {
  int n = lua_gettop(L), best = 1;
  fe_lib_charge(L, (uint64_t)n);
  if (n < 1)
    fe_lib_arg_error(L, 1, "value expected");
  for (int i = 2; i <= n; i++)
    if (sign > 0 ? less(L, best, i, "math.max") : less(L, i, best, "math.min"))
      best = i;
  lua_pushvalue(L, best);
  return 1;
}

static int math_max(lua_State *L) {
  fe_lib_no_dev(L, "math.max", "use max");
  return extreme(L, 1);
}

static int math_min(lua_State *L) {
  fe_lib_no_dev(L, "math.min", "use min");
  return extreme(L, -1);
}

static int math_tointeger(lua_State *L) {
  fe_lib_no_dev(L, "math.tointeger", "a device value is not a Lua number; use cast");
  int exact;
  lua_Integer i = lua_tointegerx(L, 1, &exact);
  if (exact) {
    lua_pushinteger(L, i);
  } else {
    fe_lib_arg_any(L, 1);
    luaL_pushfail(L);
  }
  return 1;
}

static int math_type(lua_State *L) {
  fe_lib_no_dev(L, "math.type", "use type");
  if (lua_type(L, 1) == LUA_TNUMBER) {
    lua_pushstring(L, lua_isinteger(L, 1) ? "integer" : "float");
  } else {
    fe_lib_arg_any(L, 1);
    luaL_pushfail(L);
  }
  return 1;
}

static int math_ult(lua_State *L) {
  fe_lib_no_dev(L, "math.ult", "use <");
  lua_Integer a = fe_lib_arg_int(L, 1), b = fe_lib_arg_int(L, 2);
  lua_pushboolean(L, (lua_Unsigned)a < (lua_Unsigned)b);
  return 1;
}

void fe_lib_add_math(lua_State *L, const struct fe_lib_host *host) {
  static const luaL_Reg functions[] = {
      {"abs", math_abs},     {"acos", math_acos},
      {"asin", math_asin},   {"atan", math_atan},
      {"ceil", math_ceil},   {"cos", math_cos},
      {"cosh", math_cosh},   {"deg", math_deg},
      {"exp", math_exp},     {"floor", math_floor},
      {"fmod", math_fmod},   {"frexp", math_frexp},
      {"ldexp", math_ldexp}, {"log", math_log},
      {"log10", math_log10}, {"max", math_max},
      {"min", math_min},     {"modf", math_modf},
      {"pow", math_pow},     {"rad", math_rad},
      {"sin", math_sin},     {"sinh", math_sinh},
      {"sqrt", math_sqrt},   {"tan", math_tan},
      {"tanh", math_tanh},   {"tointeger", math_tointeger},
      {"type", math_type},   {"ult", math_ult},
      {NULL, NULL},
  };
  fe_lib_register(L, host, functions);
  lua_pushnumber(L, PI);
  lua_setfield(L, -2, "pi");
  lua_pushnumber(L, HUGE_VAL);
  lua_setfield(L, -2, "huge");
  lua_pushinteger(L, LUA_MAXINTEGER);
  lua_setfield(L, -2, "maxinteger");
  lua_pushinteger(L, LUA_MININTEGER);
  lua_setfield(L, -2, "mininteger");
  static const char advice[] = "is not available in kernels: a kernel must trace the same way each "
                               "time; inputs() is given a generator";
  static const char *const random[] = {"random", "randomseed"};
  for (size_t i = 0; i < 2; i++) {
    const char *message = lua_pushfstring(L, "math.%s %s", random[i], advice);
    lua_insert(L, -2);
    fe_lib_add_refused(L, host, random[i], message);
    lua_remove(L, -2);
  }
}
