#!/bin/bash
# The one-command check: installs what is missing, lints, builds, runs every test, counts.
#
#   deploy/test.sh            everything
#   deploy/test.sh --fast     the hermetic unit and simulation tests only
#   deploy/test.sh --asan     (or --ubsan, --tsan) under a sanitiser
#   deploy/test.sh ... //daemon/rounds/...   only these targets
#
# The last line is "N passed, N failed, N skipped", counted from the test results. Ends with 0 only when
# something ran, nothing failed and the lint step is clean.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bazel=${BAZEL:-bazel}
filters=()
options=()
targets=()
for argument in "$@"; do
  case "$argument" in
    --fast) filters+=(-e2e -torch -heavy) ;;
    --asan | --ubsan) options+=("--config=${argument#--}") ;;
    --tsan) options+=(--config=tsan); filters+=(-torch) ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "test: unknown option $argument (see --help)" >&2; exit 2 ;;
    *) targets+=("$argument") ;;
  esac
done
((${#targets[@]})) || targets=(//...)

deploy/setup.sh || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }

failed_steps=()
deploy/lint.sh || failed_steps+=("lint (deploy/lint.sh)")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ((${#filters[@]})); then
  joined=$(IFS=,; echo "${filters[*]}")
  options+=("--test_tag_filters=$joined" "--build_tag_filters=$joined")
fi
# Half the cores for tests, whose daemons bring threads of their own.
cores=$(nproc)
"$bazel" test --keep_going --jobs="$cores" --local_test_jobs="$(((cores + 1) / 2))" \
  --build_event_json_file="$scratch/events.json" "${options[@]}" -- "${targets[@]}"
status=$?
# Written before the count, so that the count is the last line.
((status == 0)) || echo "test: bazel ended with $status" >&2
python3 deploy/count_tests.py "$scratch/events.json" "${failed_steps[@]}" || exit 1
# 4 is "no test found" for part of what was named; what ran is counted above.
((status == 0 || status == 4))
