# The commands of the project. `make demo` and `make check` need no preparation: they set up what is
# missing (scripts/setup), build, and run.
#
#   make demo         build, then run and verify the reference kernels (on a GPU where there is one)
#   make check        the commit tier of the tests: gcc, clang, ASan + UBSan
#   make check-long   everything else: ThreadSanitizer, coverage, stress build, valgrind, long tests
#   make format       clang-format over the tree
#   make install      the release build into DESTDIR and PREFIX
#   make clean        removes build/ (not .kiln/, what setup fetched)
.POSIX:
.PHONY: all demo check check-long format install clean
PREFIX = /usr/local

all:
	@scripts/setup build
	@scripts/build release

demo:
	@scripts/setup build demo
	@scripts/build release
	@scripts/demo

check:
	@scripts/setup build test
	@scripts/check

check-long:
	@scripts/setup build test
	@scripts/check --long

format:
	@scripts/format

install:
	@scripts/build release
	@cmake --install build/release --prefix "$(PREFIX)"

clean:
	rm -rf build
