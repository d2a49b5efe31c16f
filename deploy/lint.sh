#!/bin/bash
# Layout of the text (clang-format) and the rules of CONTRIBUTING.md (tests/lint/lint.py). Changes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
if ! command -v clang-format-14 >/dev/null; then
  echo "lint: clang-format-14 is not here; deploy/setup.sh installs it" >&2
  failed=1
else
  mapfile -t sources < <(python3 tests/lint/lint.py --list .h .cc .cu)
  complaints=$(clang-format-14 --dry-run -Werror "${sources[@]}" 2>&1 | grep ' error: ' | cut -d: -f1 | sort -u) || true
  if [[ -n $complaints ]]; then
    echo "lint: clang-format-14 -i would change:" >&2
    sed 's/^/  /' <<<"$complaints" >&2
    failed=1
  fi
fi
python3 tests/lint/lint.py || failed=1
exit "$failed"
