#!/usr/bin/env python3
"""Counts what a `bazel test` run did, from its own record of events.

Prints the failures by name and, last, "N passed, N failed, N skipped". A GoogleTest binary counts by its cases
(as its test.xml lists them), any other test as one; a test that could not be built or left no result is a failure.
Ends with 0 only when something passed and nothing failed.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


class Count:
    """Cases by outcome; failures by name."""

    def __init__(self):
        self.passed = 0
        self.skipped = 0
        self.failures = []

    def line(self):
        return f"{self.passed} passed, {len(self.failures)} failed, {self.skipped} skipped"


def count_cases(label, status, xml_text, count):
    """Adds one test's outcome. `xml_text` may be None or damaged: then the status alone counts."""
    cases = []
    try:
        root = ElementTree.fromstring(xml_text) if xml_text else None
        if root is not None and root.get("name") == "AllTests":  # GoogleTest's own
            cases = list(root.iter("testcase"))
    except ElementTree.ParseError:
        pass
    if not cases:
        if status == "PASSED":
            count.passed += 1
        else:
            count.failures.append(f"{label} ({status.lower()})")
        return
    failures_before = len(count.failures)
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            count.failures.append(f"{label} {case.get('classname')}.{case.get('name')}")
        elif case.get("status") == "notrun" or case.get("result") in ("skipped", "suppressed"):
            count.skipped += 1
        else:
            count.passed += 1
    if status != "PASSED" and len(count.failures) == failures_before:
        count.failures.append(f"{label} ({status.lower()}, with no failed case)")


def read_text(uri):
    try:
        with open(urllib.parse.unquote(urllib.parse.urlparse(uri).path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def count_events(lines, read=read_text):
    """Counts an event file given as lines of JSON."""
    count = Count()
    expected = set()
    results = {}
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # cut short: bazel was stopped
        identity = event.get("id", {})
        if "targetConfigured" in identity and event.get("configured", {}).get("testSize"):
            expected.add(identity["targetConfigured"]["label"])
        if "testResult" in identity and "testResult" in event:
            key = identity["testResult"]
            # A later attempt of the same run replaces an earlier one.
            results[(key["label"], key.get("run", 1), key.get("shard", 1))] = event["testResult"]
    for (label, _, _), result in sorted(results.items()):
        uris = {output.get("name"): output.get("uri", "") for output in result.get("testActionOutput", [])}
        text = read(uris["test.xml"]) if "test.xml" in uris else None
        count_cases(label, result.get("status", "NO_STATUS"), text, count)
    for label in sorted(expected - {key[0] for key in results}):
        count.failures.append(f"{label} (not built, or not run)")
    return count


def main(arguments):
    if not arguments:
        print("usage: count_tests.py EVENTS.json [NAME-OF-A-FAILED-STEP]...", file=sys.stderr)
        return 2
    try:
        with open(arguments[0], encoding="utf-8") as file:
            count = count_events(file)
    except OSError as error:
        print(f"no record of the test run: {error}", file=sys.stderr)
        count = Count()
    count.failures.extend(arguments[1:])
    for failure in count.failures:
        print(f"FAILED {failure}")
    if count.passed == 0 and not count.failures:
        print("nothing was run, which is a failure", file=sys.stderr)
    print(count.line(), flush=True)
    return 0 if count.passed > 0 and not count.failures else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
