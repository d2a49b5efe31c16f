#!/bin/bash
# Bazel's way to the linter's own tests.
exec python3 tests/lint/lint_test.py
