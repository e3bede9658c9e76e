#!/usr/bin/env python3
"""Counts the instructions of the scalar and AVX2 kernels under callgrind and compares them with the record.

A count moves by nothing but the source and the compiler, so it tells a change of a few per cent where a clock cannot. More
than the record allows fails; so does less, for then the record is stale: refresh it. Other compilers than the record's are
not judged (exit status 77).

usage: count_instructions.py PROGRAM RECORD COMPILER             compare
       count_instructions.py PROGRAM RECORD COMPILER --refresh   write the record
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TOLERANCE = 0.01
SKIPPED = 77


def counts(program):
    """{"avx2 Q4_0/1": (instructions, products or elements)}."""
    with tempfile.TemporaryDirectory() as folder:
        # "--cache-sim=no": counting alone. The program is the same for every run; its dumps are numbered in call order.
        run = subprocess.run(["valgrind", "--tool=callgrind", "--cache-sim=no", "--toggle-collect=cadans_counted_call",
                              "--dump-after=cadans_counted_call", "--combine-dumps=no", "--callgrind-out-file=" + folder + "/out", program],
                             capture_output=True, text=True, timeout=580)
        if run.returncode:
            sys.exit(f"count_instructions: {program} ended with {run.returncode}: {run.stderr[-500:]}")
        names = [line.split() for line in run.stdout.splitlines()]
        found = {}
        for number, (isa, name, amount) in enumerate(names, 1):
            dump = (pathlib.Path(folder) / f"out.{number}").read_text()
            total = re.search(r"^(?:totals|summary): (\d+)", dump, re.M)
            found[f"{isa} {name}"] = (int(total.group(1)), int(amount))
    return found


def shown(name, count, amount, known):
    change = "" if known is None else f"{count / known - 1:+8.2%}"
    return f"{name:28} {count:>10} {count / amount:>10.4f} {change}"


def main():
    program, record, compiler = sys.argv[1:4]
    path = pathlib.Path(record)
    found = counts(program)
    if not any(name.startswith("scalar ") for name in found):
        sys.exit(f"count_instructions: {program} counted no scalar kernel")
    if "--refresh" in sys.argv[4:]:
        kept = {"compiler": compiler, "instructions": {name: count for name, (count, _) in found.items()}}
        path.write_text(json.dumps(kept, indent=1) + "\n")
        print(f"{len(found)} counts of {compiler} are recorded in {path}")
        return 0
    known = json.loads(path.read_text())
    if known["compiler"] != compiler:
        print(f"the record is of {known['compiler']}, this is {compiler}: not judged")
        return SKIPPED
    failures = []
    print(f"{'kernel':28} {'count':>10} {'each':>10}   change")
    for name, (count, amount) in found.items():
        before = known["instructions"].get(name)
        print(shown(name, count, amount, before))
        if before is None:
            failures.append(f"{name} is not in the record")
        elif count > before * (1 + TOLERANCE):
            failures.append(f"{name} takes {count} instructions, not {before}")
        elif count < before * (1 - TOLERANCE):
            failures.append(f"{name} takes {count} instructions, fewer than the {before} recorded: refresh the record")
    isas = {name.split()[0] for name in found}
    failures += [f"{name} is recorded and was not counted" for name in known["instructions"] if name not in found and name.split()[0] in isas]
    if failures:
        print("\n".join(failures))
        print("ninja kernels_counts_refresh writes a new record, when the change is meant")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
