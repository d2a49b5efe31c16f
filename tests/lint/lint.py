#!/usr/bin/env python3
"""Enforces what CONTRIBUTING.md promises about the source: layers, include doors, banned words, sizes, comments.

Run from anywhere; reads the files of the checkout this script lies in (tracked and untracked, not ignored), prints
one line per finding, and ends with 1 when there is any. rules.py and layers.py hold the rules, source.py the small
scanner. `--list .h .cc` only prints the files with these endings.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import rules  # noqa: E402


def list_files(root):
    """Paths of the checkout's files, relative to `root`."""
    try:
        output = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, check=True,
                                capture_output=True).stdout.decode()
        names = [name for name in output.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if not f.startswith((".git", "bazel-"))]
            names += [os.path.relpath(os.path.join(folder, file), root) for file in files]
    return sorted(name for name in set(names) if os.path.isfile(os.path.join(root, name)))


def load(root):
    """Path -> text of every file the rules look at."""
    texts = {}
    for name in list_files(root):
        if rules.is_checked(name):
            with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
                texts[name] = file.read()
    return texts


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if sys.argv[1:2] == ["--list"]:
        print("\n".join(name for name in list_files(root) if name.endswith(tuple(sys.argv[2:]))))
        return 0
    findings = rules.check_all(load(root))
    for finding in findings:
        print(finding)
    if findings:
        print(f"lint: {len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
