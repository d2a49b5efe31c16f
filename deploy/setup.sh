#!/bin/bash
# Installs the Debian packages that building, testing and the demo need, and nothing else: no setting of the
# machine is touched. With everything in place it only asks dpkg and returns, so it is run before each of the
# other commands.
set -euo pipefail

packages=(
  g++ pkg-config python3 git
  bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-platforms bazel-skylib
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev
  libtorch-dev libopenblas0-pthread
  libzstd-dev zstd libxxhash-dev libsqlite3-dev libssl-dev
  libspdlog-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  clang-14 clang-format-14
  bible-kjv
)

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# What dpkg does not list as installed.
missing_packages() {
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' "${packages[@]}" 2>/dev/null |
    sed -n 's/^ii  *//p') || true
  local package
  for package in "${packages[@]}"; do
    grep -qxF -- "$package" <<<"$installed" || printf '%s\n' "$package"
  done
}

check_system() {
  local id="" id_like="" version_id="" pretty_name=""
  if [[ -r /etc/os-release ]]; then
    # shellcheck disable=SC1091
    { id=$(. /etc/os-release; echo "${ID:-}"); id_like=$(. /etc/os-release; echo "${ID_LIKE:-}")
      version_id=$(. /etc/os-release; echo "${VERSION_ID:-}")
      pretty_name=$(. /etc/os-release; echo "${PRETTY_NAME:-}"); }
  fi
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die "this system (${pretty_name:-unknown}) is not supported: Isthmus builds on Debian 12 with the" \
      "distribution's packages, and neither dpkg nor apt-get is here. Nothing was changed."
  fi
  case "$(uname -m)" in
    x86_64 | aarch64) ;;
    *) die "machine type $(uname -m) is not supported: x86_64 or aarch64 is needed. Nothing was changed." ;;
  esac
  if [[ "$id $version_id" != "debian 12" ]]; then
    case " $id $id_like " in
      *" debian "*) say "${pretty_name:-this system} is not Debian 12; trying its packages of the same names" ;;
      *) die "this system (${pretty_name:-unknown}) is not supported: Debian 12 is. Nothing was changed." ;;
    esac
  fi
}

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  else
    sudo -n true 2>/dev/null || [[ -t 0 ]] ||
      die "sudo asks for a password and there is no terminal to type it on; run as root, or install first: ${missing[*]}"
    sudo -- "$@"
  fi
}

check_system
mapfile -t missing < <(missing_packages)
if ((${#missing[@]} == 0)); then exit 0; fi

if [[ $(id -u) != 0 ]] && ! command -v sudo >/dev/null; then
  die "not root and no sudo here; ask an administrator to install: ${missing[*]}"
fi
say "installing ${#missing[@]} packages: ${missing[*]}"
install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends)
if ! as_root "${install[@]}" "${missing[@]}" </dev/null >/dev/null 2>&1; then
  # The lists may be old or absent (a fresh machine has none).
  as_root apt-get update -qq </dev/null >&2 || say "apt-get update failed; trying with the lists at hand"
  as_root "${install[@]}" "${missing[@]}" </dev/null >&2 ||
    die "apt-get could not install: ${missing[*]} (its own words are above)"
fi
mapfile -t missing < <(missing_packages)
((${#missing[@]} == 0)) || die "still missing after the installation: ${missing[*]}"
say "done"
