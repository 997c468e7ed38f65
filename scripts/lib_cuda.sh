# Finding CUDA's libraries, or fetching them as pinned wheels; sourced by scripts/setup.
# shellcheck shell=sh disable=SC2154  # home, log and scratch are the caller's
# Supported NVRTC: 12.4 to 13.x, and not of a later major version than the driver's.

# Where CUDA's libraries usually are, most specific first.
cuda_library_dirs() {
  {
    echo "$KILN_ROOT/.kiln/cuda/lib"
    for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}"; do
      [ -z "$root" ] || printf '%s\n' "$root/lib64" "$root/lib"
    done
    echo "${LD_LIBRARY_PATH:-}" | tr ':' '\n'
    ls -d /usr/local/cuda/lib64 /usr/local/cuda-*/lib64 /opt/cuda/lib64 \
      "/usr/lib/$(multiarch)" /usr/lib64 2>/dev/null
    /sbin/ldconfig -p 2>/dev/null | sed -n 's#.*=> \(/.*\)/libnvrtc\.so\..*#\1#p'
  } | awk 'NF && !seen[$0]++'
}

find_cuda_header() {
  for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr /opt/cuda; do
    if [ -n "$root" ] && [ -e "$root/include/$1" ]; then
      echo "$root/include/$1"
      return
    fi
  done
}

# Major.minor of the NVRTC in a folder; its builtins' file name tells it without loading anything.
nvrtc_version() {
  ls "$1"/libnvrtc.so.[0-9]* >/dev/null 2>&1 || return 0
  for file in "$1"/libnvrtc-builtins.so.[0-9]*; do
    version=$(echo "${file##*.so.}" | awk -F. 'NF >= 2 { print $1 "." $2 }')
    if [ -n "$version" ]; then
      echo "$version"
      return
    fi
  done
}

gpu_seen() {
  ls /proc/driver/nvidia/gpus/* >/dev/null 2>&1 || nvidia-smi -L 2>/dev/null | grep -q '^GPU'
}

# The major CUDA version of the installed driver: 13 from 580 on, else 12; nothing without a driver.
driver_cuda_major() {
  version=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | sed -n 1p)
  [ -n "$version" ] || version=$(sed -n 's/.*Module  *\([0-9.]*\).*/\1/p' \
    /proc/driver/nvidia/version 2>/dev/null || true)
  case $version in [0-9]*) if [ "${version%%.*}" -ge 580 ]; then echo 13; else echo 12; fi ;; esac
}

# Whether there is a usable NVRTC; passes over others with a word.
find_nvrtc() {
  most=$(driver_cuda_major)
  for dir in $(cuda_library_dirs); do
    version=$(nvrtc_version "$dir")
    [ -n "$version" ] || continue
    if ! version_at_least "$version" 12 4; then
      say "NVRTC $version in $dir is older than 12.4: passed over"
    elif version_at_least "$version" "$((${most:-13} + 1))" 0; then
      say "NVRTC $version in $dir is newer than the driver's CUDA ${most:-13}: passed over"
    else
      return 0
    fi
  done
  return 1
}

find_cublas() {
  for dir in $(cuda_library_dirs); do
    for major in 12 13; do
      if [ -e "$dir/libcublasLt.so.$major" ] && [ -e "$dir/libcublas.so.$major" ]; then return 0; fi
    done
  done
  return 1
}

# A pip that is there, or one of our own: in a private environment, or run from the distribution's
# wheel of it. The system's Python is only ever asked to run, never changed.
find_pip() {
  if python3 -m pip --version >/dev/null 2>&1; then
    pip="python3 -m pip"
    return 0
  fi
  venv=$KILN_ROOT/.kiln/venv
  if [ -x "$venv/bin/pip" ] || python3 -m venv "$venv" >>"$log" 2>&1; then
    pip="$venv/bin/python -m pip"
    return 0
  fi
  rm -rf "$venv"
  wheels=$home/sysroot/usr/share/python-wheels
  if ! ls "$wheels"/pip-*.whl >/dev/null 2>&1; then
    get download python3-pip-whl || return 1
    unpack
  fi
  pip="python3 $(echo "$wheels"/pip-*.whl)/pip"
}

# fetch_wheel NAME: the wheel that scripts/wheels/NAME.txt pins; its libraries go to .kiln/cuda/lib.
fetch_wheel() {
  pins=$KILN_ROOT/scripts/wheels/$1.txt
  find_pip || return 1
  bytes=$(sed -n "s/^# bytes.* $(uname -m) \([0-9]*\).*/\1/p" "$pins")
  say "fetching $(sed -n 's/ *\\$//; /==/p' "$pins"): $(megabytes "${bytes:-0}")"
  rm -rf "$scratch/wheel" && mkdir -p "$scratch/wheel" "$home/cuda/lib"
  $pip download -q --require-hashes --no-deps --only-binary=:all: --no-cache-dir \
    --disable-pip-version-check -d "$scratch/wheel" -r "$pins" >>"$log" 2>&1 </dev/null || return 1
  python3 -m zipfile -e "$scratch/wheel"/*.whl "$scratch/wheel/out" || return 1
  # Moved in one by one and last, so that an interrupted run leaves nothing that looks whole.
  find "$scratch/wheel/out" -name 'lib*.so*' -type f | sort | while read -r file; do
    case ${file##*/} in *.alt.*) continue ;; esac
    cp "$file" "$home/cuda/lib/.part" && mv "$home/cuda/lib/.part" "$home/cuda/lib/${file##*/}"
  done
  find "$scratch/wheel/out" -type f -iname 'license*' -exec cp {} "$home/cuda/$1-license.txt" \;
  rm -rf "$scratch/wheel"
}

setup_cuda() {
  major=$(driver_cuda_major)
  if ! find_nvrtc; then
    if [ "${KILN_WITHOUT_NVRTC:-0}" = 1 ]; then
      say "no NVRTC, as KILN_WITHOUT_NVRTC=1 asks: kernels are interpreted, not compiled"
      return 0
    fi
    if ! fetch_wheel "nvrtc-${major:-13}" || ! find_nvrtc; then
      die "no NVRTC 12.4 or later here, and none could be fetched (see $(relative "$log"))" \
        "Install a CUDA toolkit, or python3 with pip and access to its package index," \
        "or set KILN_WITHOUT_NVRTC=1 to go on without compiling kernels."
    fi
  fi
  if gpu_seen && ! find_cublas; then
    if ! fetch_wheel "cublas-${major:-13}" || ! find_cublas; then
      say "cuBLAS could not be fetched: results are checked without it, speed is not compared"
    fi
  fi
}
