#!/usr/bin/env python3
"""Adds up JUnit files and prints the failed cases and, as the last line, "N passed, M failed[, K skipped]".

    python3 tools/count_tests.py FILE...

A file that is missing or broken counts as one failed case. Exit status 0 only if nothing failed and something passed.
"""
import sys
import xml.etree.ElementTree

SHOWN = 30   # last lines of a failed unit test's output


def outcome(case):
    kinds = {child.tag for child in case}
    skipped = case.find("skipped")
    unbuilt = skipped is not None and "executable" in (skipped.get("message") or "")
    if kinds & {"failure", "error"} or case.get("status") == "fail" or unbuilt:
        return "failed"
    return "skipped" if skipped is not None or case.get("status") == "disabled" else "passed"


def main(files):
    count, failed = {"passed": 0, "failed": 0, "skipped": 0}, []
    for file in files:
        try:
            cases = list(xml.etree.ElementTree.parse(file).iter("testcase"))
        except (OSError, xml.etree.ElementTree.ParseError) as error:
            count["failed"] += 1
            failed.append(f"{file}: no readable result ({error})")
            continue
        for case in cases:
            result = outcome(case)
            count[result] += 1
            if result == "failed":
                said = (case.findtext("system-out") or "").rstrip().splitlines()[-SHOWN:]
                failed.append("\n    ".join([f"{case.get('classname')}: {case.get('name')}", *said]))
    for line in failed:
        print("failed:", line)
    print(f"{count['passed']} passed, {count['failed']} failed" + (f", {count['skipped']} skipped" if count["skipped"] else ""))
    return 0 if count["passed"] and not count["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
