#!/bin/bash
# Bazel's way to the second decoder's tests.
exec python3 tests/format/golden_test.py
