#!/bin/bash
# scripts/chroot_check.sh RELEASE USER [LOG]   (RELEASE: bookworm, trixie; USER: root or a new name)
#
# Shows that the two commands work on a fresh system: a minimal debootstrap chroot of RELEASE with
# the README's prerequisite line, a clean clone of HEAD, no CUDA toolkit, no GPU; then `make demo` and
# `make check`, as root, or as a user without privileges on a system where an administrator has
# installed a compiler, make, cmake and python3. Needs root, debootstrap and the network; the
# machine's own apt, pip and proxy settings are lent to the chroot and appear in no log.
# KEEP=1 keeps the chroot. The log goes to docs/runs/.
set -euo pipefail
cd "$(dirname "$0")/.."
release=$1 user=$2
log=${3:-docs/runs/chroot-$release-$user.log}
base=/tmp/chroot-base-$release
root=/tmp/chroot-$release-$user
raw=$(mktemp)

unmount() {
  for dir in dev/pts dev proc; do
    if mountpoint -q "$root/$dir"; then umount --lazy "$root/$dir"; fi
  done
}
cleanup() {
  unmount
  rm -f "$raw"
  if [ "${KEEP:-0}" != 1 ]; then rm -rf --one-file-system "$root"; fi
}
trap cleanup EXIT

mirror() { # this machine's mirror of Debian
  sed -n -e 's/^URIs: *\([^ ]*\/debian\)\/* *$/\1/p' \
    -e 's/^deb \(\[[^]]*\] \)*\([^ ]*\/debian\)\/* .*/\2/p' \
    /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list \
    2>/dev/null |
    awk 'NR == 1' || true # not every one of these files exists
}

if [ ! -e "$base/.complete" ]; then
  rm -rf --one-file-system "$base"
  debootstrap --variant=minbase "$release" "$base" "$(mirror)" >/tmp/debootstrap-"$release".log 2>&1
  printf 'deb %s %s main\n' "$(mirror)" "$release" >"$base/etc/apt/sources.list"
  touch "$base/.complete"
fi
if [ -e "$root" ]; then
  unmount
  rm -rf --one-file-system "$root"
fi
cp -a "$base" "$root"

# Lent for this run: name service, certificates, pip's and apt's settings of this machine.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/hosts "$root/etc/hosts"
for file in /etc/pip.conf /etc/apt/apt.conf.d/99artifact-registry; do
  if [ -e "$file" ]; then cp -L "$file" "$root$file"; fi
done
# Under a name of its own: installing ca-certificates replaces the usual one.
mkdir -p "$root/etc/ssl"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/lent.crt"
lent='PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT)|[a-z]+_proxy|[A-Z]+_PROXY'
settings=$(env | grep -E "^($lent)=" || true)
settings="${settings:+$settings
}PIP_CERT=/etc/ssl/lent.crt"
mount --bind /dev "$root/dev"
mount --bind /dev/pts "$root/dev/pts"
mount -t proc proc "$root/proc"

net="" # or a command that takes the network away
in_chroot() { # in_chroot USER COMMAND, with a clean environment
  local who=$1 home=/root
  [ "$who" = root ] || home=/home/$who
  # shellcheck disable=SC2206  # words
  local command=($net env -i) line
  while read -r line; do command+=("$line"); done <<<"$settings"
  command+=(DEBIAN_FRONTEND=noninteractive HOME="$home" PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
    chroot --userspec="$who" "$root" /bin/sh -c "$2")
  "${command[@]}" </dev/null
}

step() { # step USER COMMAND: prints the command, runs it, prints its exit code and time
  echo "[$1] \$ $2"
  local start=$SECONDS code=0
  in_chroot "$1" "$2" 2>&1 || code=$?
  echo "[exit code $code, $((SECONDS - start)) s]"
  echo
  if [ "$code" != 0 ]; then ok=1; fi
}

ok=0
place=/srv/kiln
mkdir -p "$root$place"
git clone -q --no-hardlinks . "$root$place/clone"
if [ "$user" != root ]; then
  in_chroot root "useradd -m $user"
  in_chroot root "chown -R $user $place"
else
  in_chroot root "chown -R root $place"
fi
{
  # shellcheck disable=SC1091
  name=$(. "$root/etc/os-release" && echo "$PRETTY_NAME")
  echo "# Fresh $name (debootstrap, minbase), user $user"
  echo "# commit $(git rev-parse --short HEAD), $(date -u +%Y-%m-%d), $(nproc) cores"
  echo "# no GPU, no CUDA toolkit"
  echo
  step root "apt-get update >/dev/null && apt-get install -y make git ca-certificates >/dev/null"
  if [ "$user" != root ]; then
    step "$user" "cd $place/clone && make demo 2>&1 | tail -n 5"
    ok=0 # names what an administrator must install
    step root "apt-get install -y --no-install-recommends gcc libc6-dev cmake python3 >/dev/null"
  fi
  step "$user" "cd $place/clone && make demo"
  step "$user" "cd $place/clone && make check"
  echo "# Again, without a network:"
  net="unshare --net"
  step "$user" "cd $place/clone && make demo | tail -n 1 && scripts/setup build test"
  net=""
  step "$user" "cd $place/clone && du -sh .kiln build | cat && git status --short"
  [ "$ok" = 0 ] && echo "# all as expected" || echo "# NOT as expected"
} 2>&1 | tee "$raw" | grep -E '^\[|^(setup|build|check|demo|failed|broken)|passed' || true

# What would name this machine or its mirrors does not belong in a log.
hosts=$(mirror | sed -n 's#^[a-z]*://\([^/]*\).*#\1#p')
sed -E -e "s#${hosts:-no-such-host}#MIRROR#g" -e 's#[a-z]+://[^ /]+#URL#g' \
  -e "s#$place/clone#~/kiln#g" "$raw" >"$log"
tail -n 1 "$log" | grep -q '^# all as expected'
