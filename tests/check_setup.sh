#!/bin/sh
# scripts/setup's decisions, with fake toolkits and drivers and without a network: which NVRTC is
# taken, which is passed over and why, which wheel a driver gets, what a user without root is told.
set -eu
src=${KILN_SRC:-$(cd "$(dirname "$0")/.." && pwd)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0
unset KILN_WITHOUT_NVRTC

equal() { # equal WHAT EXPECTED GOT
  if [ "$2" = "$3" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'wrong: %s\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
  fi
}

toolkit() { # toolkit FOLDER MAJOR MINOR: an NVRTC as CUDA lays it down
  mkdir -p "$dir/$1"
  : >"$dir/$1/libnvrtc.so.$2"
  : >"$dir/$1/libnvrtc-builtins.so.$2.$3"
}

driver() { # driver VERSION, or none
  rm -rf "${dir:?}/bin" && mkdir "$dir/bin"
  if [ "$1" = none ]; then
    printf '#!/bin/sh\nexit 9\n' >"$dir/bin/nvidia-smi"
  else
    printf '#!/bin/sh\ncase $1 in -L) echo "GPU 0: Fake" ;; *) echo %s ;; esac\n' "$1" \
      >"$dir/bin/nvidia-smi"
  fi
  chmod +x "$dir/bin/nvidia-smi"
}

# ask SHELL-TEXT: runs it after the scripts' libraries, looking only at the fake folders.
ask() {
  PATH=$dir/bin:$PATH LD_LIBRARY_PATH=${libraries:-} sh -c '
    set -eu
    . "$1/scripts/lib.sh"
    . "$1/scripts/lib_cuda.sh"
    KILN_ROOT=$2
    cuda_library_dirs() { echo "$LD_LIBRARY_PATH" | tr ":" "\n"; }
    eval "$3"' scripts/setup "$src" "$dir" "$1" 2>&1 || echo "exit code $?"
}

version_of() { ask "nvrtc_version $dir/$1"; }
toolkit old 12 2
toolkit least 12 4
toolkit mid 12 9
toolkit new 13 0
toolkit next 14 0
mkdir "$dir/half" && : >"$dir/half/libnvrtc-builtins.so.13.0"
equal "version of 12.2" 12.2 "$(version_of old)"
equal "version of 13.0" 13.0 "$(version_of new)"
equal "an unfinished copy is none" "" "$(version_of half)"
equal "an empty folder is none" "" "$(version_of bin)"

if [ -e /proc/driver/nvidia/version ]; then
  skipped=1
  echo "SKIP: a driver is installed: machines without one cannot be played"
else
  driver none
  equal "no driver" "" "$(ask driver_cuda_major)"
  equal "no driver: 13 is taken" "yes" "$(libraries=$dir/new ask 'find_nvrtc && echo yes')"
fi
driver 535.104.05
equal "driver 535 is CUDA 12" 12 "$(ask driver_cuda_major)"
equal "a GPU is seen" yes "$(ask 'gpu_seen && echo yes')"
driver 579.99
equal "driver 579 is CUDA 12" 12 "$(ask driver_cuda_major)"
equal "12.2 is too old" "setup: NVRTC 12.2 in $dir/old is older than 12.4: passed over
exit code 1" "$(libraries=$dir/old ask find_nvrtc)"
equal "13.0 is too new for it" "setup: NVRTC 13.0 in $dir/new is newer than the driver's CUDA 12: passed over
exit code 1" "$(libraries=$dir/new ask find_nvrtc)"
equal "12.4 and 12.9 will do" "yes yes" "$(libraries=$dir/least ask 'find_nvrtc && echo yes') \
$(libraries=$dir/mid ask 'find_nvrtc && echo yes')"
equal "the next one is looked at" "setup: NVRTC 12.2 in $dir/old is older than 12.4: passed over
yes" "$(libraries=$dir/old:$dir/half:$dir/mid ask 'find_nvrtc && echo yes')"
driver 580.65.06
equal "driver 580 is CUDA 13" 13 "$(ask driver_cuda_major)"
equal "12.9 and 13.0 will do" "yes yes" "$(libraries=$dir/mid ask 'find_nvrtc && echo yes') \
$(libraries=$dir/new ask 'find_nvrtc && echo yes')"
equal "14.0 is not known" "setup: NVRTC 14.0 in $dir/next is newer than the driver's CUDA 13: passed over
exit code 1" "$(libraries=$dir/next ask find_nvrtc)"

choose='home=$KILN_ROOT log=/dev/null; fetch_wheel() { echo "wheel $1"; return 1; }; setup_cuda'
driver 550.1
equal "a 12 driver gets the 12 wheel" "wheel nvrtc-12" "$(ask "$choose" | head -n 1)"
driver 590.1
equal "a 13 driver gets the 13 wheel" "wheel nvrtc-13" "$(ask "$choose" | head -n 1)"
equal "no NVRTC is an error" "exit code 1" "$(ask "$choose" | tail -n 1)"
equal "a GPU gets cuBLAS" "wheel cublas-13" "$(libraries=$dir/new ask "$choose" | head -n 1)"
: >"$dir/new/libcublas.so.13" && : >"$dir/new/libcublasLt.so.13"
equal "cuBLAS is seen" "" "$(libraries=$dir/new ask "$choose")"
equal "KILN_WITHOUT_NVRTC goes on" \
  "setup: no NVRTC, as KILN_WITHOUT_NVRTC=1 asks: kernels are interpreted, not compiled" \
  "$(KILN_WITHOUT_NVRTC=1 ask "$choose" | head -n 1)"

for pins in "$src"/scripts/wheels/*.txt; do
  equal "${pins##*/} pins one version and two hashes" "1 2" \
    "$(grep -c '==' "$pins") $(grep -cE -- '--hash=sha256:[0-9a-f]{64}' "$pins")"
done
equal "versions compare as numbers" "yes no yes no" "$(for v in '3.25.1 3 22' '3.9 3 22' '4.0 3 22' '2.99 3 0'; do
  ask "if version_at_least $v; then echo yes; else echo no; fi"
done | tr '\n' ' ' | sed 's/ $//')"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
