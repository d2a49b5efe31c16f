#!/bin/bash
# On a machine with a GPU and nvcc: builds the apply kernel and its check without Bazel, and runs it.
# Exit 0: kernel and host twin give the same bits; 1: they differ or the build failed; 2: no nvcc or no device.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

nvcc=""
for candidate in "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" /usr/local/cuda/bin/nvcc "$(command -v nvcc || true)"; do
  if [[ -n $candidate && -x $candidate ]]; then
    nvcc=$candidate
    break
  fi
done
if [[ -z $nvcc ]]; then
  echo "device check: no nvcc; set CUDA_HOME" >&2
  exit 2
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# The device's own architecture where it can be asked; sm_90 otherwise.
architecture=native
nvidia-smi -L >/dev/null 2>&1 || architecture=sm_90
"$nvcc" -std=c++17 -O2 -arch="$architecture" -fmad=false -Xcompiler -ffp-contract=off,-Wall -I . \
  gpu/apply_cuda.cu gpu/device_check_cases.cc gpu/device_check.cc -o "$out/device_check"
"$out/device_check"
