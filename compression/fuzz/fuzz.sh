#!/bin/bash
# Fuzzes every decoder with clang-14's libFuzzer under the address and undefined behaviour sanitisers, beginning
# from compression/testdata. What it finds becomes a golden bad file with its error.
#
#   fuzz.sh          ten seconds a target; as a Bazel test, and says aloud when clang is not there
#   fuzz.sh --all    ten minutes a target
#   fuzz.sh SECONDS
set -euo pipefail
[[ -n ${TEST_SRCDIR:-} ]] || cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage() { echo "usage: fuzz.sh [--all | SECONDS]   SECONDS a whole number from 1 to 999999" >&2; exit 2; }
[[ $# -le 1 ]] || usage
case ${1---quick} in
  --all) seconds=600 ;;
  --quick) seconds=10 ;;
  *) [[ $1 =~ ^[1-9][0-9]{0,5}$ ]] && seconds=$1 || usage ;;
esac

if ! command -v clang++-14 >/dev/null; then
  echo "fuzz: SKIPPED, clang++-14 is not here (Debian packages clang-14 and libclang-rt-14-dev)" >&2
  [[ -n ${XML_OUTPUT_FILE:-} ]] || exit 2
  echo '<testsuites name="AllTests"><testsuite name="Fuzz"><testcase name="Decoders" classname="Fuzz"' \
    'result="skipped"/></testsuite></testsuites>' >"$XML_OUTPUT_FILE"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
targets=(frame update carried)
flags=(-std=c++17 -O1 -Wno-unknown-warning-option -gline-tables-only -fsanitize=address,undefined -fno-sanitize-recover=undefined
       -ffp-contract=off -I .)
libraries=(-labsl_status -labsl_statusor -labsl_strings -labsl_str_format_internal -labsl_cord -labsl_synchronization -labsl_base
           -labsl_throw_delegate -labsl_raw_logging_internal -labsl_bad_variant_access -lzstd -lxxhash -lpthread)

# All of the library, without what is for tests and benches only, once for all targets.
export work
compile() {
  clang++-14 "${@:2}" -fsanitize=fuzzer-no-link -c "$1" -o "$work/$(basename "$1" .cc).o"
}
export -f compile
{ ls compression/*.cc | grep -vE '_test.cc|/(golden_|fake_|reference_|update_bound|stream_sizes|exponent_history)'
  ls compression/fuzz/*_fuzz.cc; } |
  xargs -P "$(nproc)" -I{} bash -c 'compile "$@"' _ {} "${flags[@]}"
mapfile -t objects < <(ls "$work"/*.o | grep -v '_fuzz\.o$')

# The first byte of an input chooses codec and layout.
for target in "${targets[@]}"; do
  mkdir "$work/$target.corpus"
  for file in compression/testdata/*."$target"; do
    [[ -e $file ]] || continue
    for choice in 0 1 2 3 4 5 6 7 8 9 a; do
      { printf "\\x0$choice"; cat "$file"; } >"$work/$target.corpus/$(basename "$file").$choice"
    done
  done
  clang++-14 "${flags[@]}" -fsanitize=fuzzer "$work/${target}_fuzz.o" "${objects[@]}" "${libraries[@]}" \
    -o "$work/$target"
done

# Side by side: they wait for nothing but the processor.
export seconds
fuzz() {
  "$work/$1" -max_total_time="$seconds" -rss_limit_mb=512 -malloc_limit_mb=16 -timeout=10 -max_len=4096 \
    -artifact_prefix="${TEST_UNDECLARED_OUTPUTS_DIR:-$PWD}/$1-" -print_final_stats=1 "$work/$1.corpus" \
    >"$work/$1.log" 2>&1 || { echo "fuzz: $1 failed" >&2; tail -60 "$work/$1.log" >&2; return 1; }
  echo "fuzz: $1 for $seconds s, $(grep -o 'number_of_executed_units: *[0-9]*' "$work/$1.log" || echo ?)"
}
export -f fuzz
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz {}'
