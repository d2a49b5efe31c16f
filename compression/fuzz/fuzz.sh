#!/bin/bash
# Fuzzes the decoders with clang-14's libFuzzer under the address sanitiser, beginning from compression/testdata.
# usage: fuzz.sh [seconds per target, default 60]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-60}

if ! command -v clang++-14 >/dev/null; then
  echo "fuzz: clang++-14 is not here (Debian packages clang-14 and libclang-rt-14-dev)" >&2
  exit 2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# All of the library, without what is for tests only.
mapfile -t sources < <(ls compression/*.cc | grep -vE '_test.cc|/(golden_cases|fake_codecs|reference_sum).cc')
libraries=(-labsl_status -labsl_statusor -labsl_strings -labsl_str_format_internal -labsl_cord -labsl_base
           -labsl_throw_delegate -labsl_raw_logging_internal -labsl_bad_variant_access -lzstd -lxxhash)
for target in frame update; do
  clang++-14 -std=c++17 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    -ffp-contract=off -I . "compression/fuzz/${target}_fuzz.cc" "${sources[@]}" "${libraries[@]}" -o "$work/$target"
  mkdir "$work/$target.corpus"
  # The first byte of an input chooses codec and layout.
  for file in compression/testdata/*."$target"; do
    for choice in 0 1 2 3 4 5 6 7 8; do
      { printf "\\x0$choice"; cat "$file"; } >"$work/$target.corpus/$(basename "$file").$choice"
    done
  done
  echo "fuzz: $target for $seconds s"
  "$work/$target" -max_total_time="$seconds" -rss_limit_mb=512 -malloc_limit_mb=16 -artifact_prefix="$work/" \
    -print_final_stats=1 "$work/$target.corpus" 2>&1 | tail -12
done
