/* Parts of a range side by side: every number once, in one part, whatever the sizes. */
#include "base/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1 << 20 };

struct marks {
  atomic_uchar at[MOST]; /* how often a part held the number */
  atomic_int parts;
  int64_t least, n;
  atomic_bool short_part; /* shorter than asked for, and not the last one */
};

static void mark(void *user, int64_t first, int64_t end) {
  struct marks *m = user;
  m->parts++;
  if (end - first < m->least && end != m->n)
    m->short_part = true;
  for (int64_t i = first; i < end; i++)
    m->at[i]++;
}

static void every_number_once(void **state) {
  (void)state;
  static const int64_t sizes[] = {0, 1, 2, 3, 63, 64, 65, 1000, 4097, MOST - 1, MOST};
  static const int64_t leasts[] = {0, 1, 7, 64, 1 << 16, MOST, INT64_MAX};
  static struct marks m;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (size_t l = 0; l < sizeof leasts / sizeof *leasts; l++) {
      memset(&m, 0, sizeof m);
      m.n = sizes[s];
      m.least = leasts[l];
      threads_split(m.n, m.least, mark, &m);
      for (int64_t i = 0; i < MOST; i++)
        if (m.at[i] != (i < m.n))
          fail_msg("%lld numbers, parts of %lld: number %lld is in %d parts", (long long)m.n,
                   (long long)m.least, (long long)i, m.at[i]);
      assert_false(m.short_part);
      assert_true(m.n == 0 ? m.parts == 0 : m.parts >= 1);
      if (m.n <= m.least)
        assert_int_equal(m.parts, m.n > 0);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_number_once)};
  return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
