#!/bin/bash
# From a clone to a model trained across three sites: a coordinator and three workers as processes of their own on
# loopback train a byte-level language model on the King James text. One site is held to a third of the others' speed;
# one is killed in mid-run and started again.
#
#   deploy/demo.sh               the full run, under five minutes once built
#   deploy/demo.sh --quick       fewer steps, under one minute
#   deploy/demo.sh --data FILE   another text (then no loss is demanded of it)
#   deploy/demo.sh --out DIR     where logs, the loss curve and the model go; demo-out when absent
#
# Ends with 0 only when every round was kept, all anchors agreed, and the held-out loss is as low as it should be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bazel=${BAZEL:-bazel}
run_file=deploy/demo.textproto rounds=48 min_rounds=40 max_loss=1.75
data="" out=demo-out
while (($#)); do
  case "$1" in
    --quick) run_file=deploy/demo_quick.textproto rounds=40 max_loss=2.2 ;;
    --data) data=${2:?--data needs a file}; shift; max_loss=0 ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) echo "demo: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done

say() { printf 'demo: %s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }

# Everything this script started and not yet ended, by process id.
declare -A pids=()
# Waits a moment without a process: nobody ever writes here.
moment() { read -r -t "$1" -u 9 || true; }

stop_all() {
  local name tries=0
  for name in "${!pids[@]}"; do kill -TERM "${pids[$name]}" 2>/dev/null || true; done
  for name in "${!pids[@]}"; do
    while kill -0 "${pids[$name]}" 2>/dev/null && ((tries++ < 50)); do moment 0.1; done
    kill -KILL "${pids[$name]}" 2>/dev/null || true
    wait "${pids[$name]}" 2>/dev/null || true
  done
  pids=()
}
trap 'say "stopping what was started"; trap - EXIT; stop_all; exit 130' INT TERM
trap 'stop_all' EXIT

deploy/setup.sh
say "building (minutes the first time, nothing the next)"
"$bazel" build //daemon/app:isthmus
isthmus=$PWD/bazel-bin/daemon/app/isthmus

mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -rf "$out/state" "$out"/*.log "$out"/rate-*.txt "$out"/*.fifo "$out/status.json" "$out/loss.svg"
mkfifo "$out/never.fifo" "$out/coordinator.fifo" "$out/report.fifo"
# Open for both ways, so that neither end ever blocks or breaks.
exec 7<>"$out/report.fifo" 8<>"$out/coordinator.fifo" 9<>"$out/never.fifo"
rm -f "$out"/*.fifo

if [[ -z $data ]]; then
  data=$out/kjv.txt
  [[ -s $data ]] || { bible -f 'gen1:1-rev22:21' >"$data.part" && mv "$data.part" "$data"; }
fi
[[ -r $data ]] || die "$data cannot be read"
"$isthmus" validate "$run_file" --data "$data"

# One thread to a worker: three share the machine.
export OMP_NUM_THREADS=1
started=$SECONDS

# How fast is a worker here? As many at once as will run at full speed; then what is left of it when the slow one takes
# its third of a share as well.
cores=$(env -u OMP_NUM_THREADS nproc)  # nproc would take that for the number of cores
measured=()
for ((i = 0; i < (cores < 2 ? 1 : 2); i++)); do
  "$isthmus" bench train "$run_file" --data "$data" --seconds 3 --rate-only >"$out/rate-$i.txt" 2>"$out/rate-$i.log" 7>&- 8>&- 9>&- &
  pids[rate-$i]=$!
  measured+=("$i")
done
for i in "${measured[@]}"; do
  wait "${pids[rate-$i]}" || { cat "$out/rate-$i.log" >&2; die "the speed of a worker could not be measured"; }
  unset "pids[rate-$i]"
done
rates=$(cat "$out"/rate-*.txt)
cap=$(awk -v cores="$cores" '{ sum += $1; n++ } END {
  share = cores / (7 / 3); if (share > 1) share = 1
  printf "%d", sum / n * share / 3 }' <<<"$rates")
((cap > 0)) || die "the measured speed makes no sense: $rates"
say "one worker alone on a core trains $(awk '{ s += $1; n++ } END { printf "%d", s / n }' <<<"$rates") tokens/s;" \
  "site-slow is held to $cap tokens/s, a third of what the others will get here"

"$isthmus" coordinator "$run_file" --listen 127.0.0.1:0 --state-dir "$out/state" >&8 2>"$out/coordinator.log" \
  7>&- 9>&- &
pids[coordinator]=$!
address=""
until [[ -n $address ]]; do
  if read -r -t 0.5 -u 8 line; then
    [[ $line == "listening on "* ]] && address=${line#listening on }
  elif ! kill -0 "${pids[coordinator]}" 2>/dev/null; then
    cat "$out/coordinator.log" >&2
    die "the coordinator ended before it listened"
  fi
done
url=isthmus://$address/$(sed -n 's/^name: "\(.*\)"/\1/p' "$run_file")
say "coordinator at $url"

start_worker() {
  local site=$1
  shift
  "$isthmus" worker "$url" --data "$data" --site "$site" "$@" >>"$out/$site.log" 2>&1 7>&- 8>&- 9>&- &
  pids[$site]=$!
}
start_worker site-a
start_worker site-b
start_worker site-slow --max-tokens-per-second "$cap"

# A worker that ended badly is told of at once; one that ended well is done.
check_workers() {
  local site status
  for site in site-a site-b site-slow; do
    [[ -n ${pids[$site]:-} ]] || continue
    kill -0 "${pids[$site]}" 2>/dev/null && continue
    status=0
    wait "${pids[$site]}" || status=$?
    unset "pids[$site]"
    ((status == 0)) || die "$site ended with $status: $(tail -n 1 "$out/$site.log")"
  done
}

criteria=(--min-rounds "$min_rounds")
if [[ $max_loss != 0 ]]; then criteria+=(--max-held-out-loss "$max_loss"); fi
"$isthmus" report "$url" --follow --svg "$out/loss.svg" --save-json "$out/status.json" "${criteria[@]}" \
  >&7 2>"$out/report.log" 8>&- 9>&- &
pids[report]=$!

# Prints what the report says; kills a worker once a third of the rounds is committed.
kill_at=$((rounds / 3)) killed="" begun="" shares=""
take_line() {
  local first rest share
  printf '%s\n' "$1"
  read -r first rest <<<"$1"
  if [[ $first == site-* ]]; then
    read -r _ _ _ _ share _ <<<"$rest"
    shares+="$first $share"$'\n'
  elif [[ -z $killed && $first =~ ^[0-9]+$ ]] && ((first >= kill_at)); then
    kill -KILL "${pids[site-b]}"
    wait "${pids[site-b]}" 2>/dev/null || true
    killed=$first
    say "killed site-b with SIGKILL after round $first; starting it again"
    start_worker site-b
  fi
}
# Lines as they come; what was read of one when the time ran out begins the next.
take_lines() {
  while IFS= read -r -t "$1" -u 7 line; do
    line=$begun$line begun=""
    take_line "$line"
  done
  begun+=$line
}
while true; do
  take_lines 0.5
  if ! kill -0 "${pids[report]}" 2>/dev/null; then
    take_lines 0.1
    break
  elif ! kill -0 "${pids[coordinator]}" 2>/dev/null; then
    tail -n 5 "$out/coordinator.log" >&2
    die "the coordinator ended early"
  fi
  check_workers
done
failed=0
wait "${pids[report]}" || failed=1
unset "pids[report]"
cat "$out/report.log" >&2
[[ -s $out/status.json ]] || die "the run did not come to its end; logs are in $out"
[[ -n $killed ]] || { say "no worker was killed: the run ended first" >&2; failed=1; }

# The run is over: workers end by themselves.
for ((tries = 0; tries < 300; tries++)); do
  check_workers
  [[ -n ${pids[site-a]:-}${pids[site-b]:-}${pids[site-slow]:-} ]] || break
  moment 0.1
done
((tries < 300)) || { say "a worker goes on although the run is over" >&2; failed=1; }
kill -TERM "${pids[coordinator]}" 2>/dev/null || true
wait "${pids[coordinator]}" || { say "the coordinator ended with $?: $(tail -n 1 "$out/coordinator.log")" >&2; failed=1; }
unset "pids[coordinator]"

awk '/^site-slow/ { slow = $2; next } NF == 2 && $2 > 0 { sum += $2; n++ } END { if (n && sum > 0)
  printf "demo: site-slow trained at %.2f of the speed of the others\n", slow * n / sum }' <<<"$shares"
say "300 characters of the trained model:"
"$isthmus" sample "$run_file" --weights "$out/state/final.safetensors" --count 300 || failed=1
say "loss curve: $out/loss.svg; model: $out/state/final.safetensors; $((SECONDS - started)) seconds since the build"
if ((failed)); then die "something is not as it should be; logs are in $out"; fi
say "all is as it should be"
