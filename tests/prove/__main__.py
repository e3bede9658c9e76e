"""Runs the proofs: python -m prove [--force] [NAME...]  (make prove). One that holds for these sources is not run again."""
import importlib
import pathlib
import sys
import time
import traceback

from prove.evidence import Evidence, stamp

HELPERS = {"__init__", "__main__", "evidence"}


def main(arguments):
    force = "--force" in arguments
    wanted = [a for a in arguments if a != "--force"]
    names = sorted(p.stem for p in pathlib.Path(__file__).parent.glob("*.py") if p.stem not in HELPERS)
    unknown = set(wanted) - set(names)
    if unknown:
        print(f"no such proof: {', '.join(sorted(unknown))}; there are {', '.join(names)}", file=sys.stderr)
        return 2
    passed = failed = 0
    for name in wanted or names:
        module = importlib.import_module(f"prove.{name}")
        if not hasattr(module, "prove"):
            continue
        evidence = Evidence(module, stamp(f"tests/prove/{name}.py", *getattr(module, "INPUTS", [])))
        if not force and evidence.is_fresh():
            print(f"{name}: holds already for these sources")
            passed += 1
            continue
        print(f"{name}: {evidence.title}", flush=True)
        begin = time.monotonic()
        try:
            module.prove(evidence)
        except Exception as error:   # a proof that cannot be carried out has failed, and the others still run
            traceback.print_exc()
            evidence.require(False, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        evidence.write(time.monotonic() - begin)
        print(f"{name}: {'holds' if not evidence.failures else 'does not hold'}, see {evidence.page.relative_to(pathlib.Path.cwd())}"
              if evidence.page.is_relative_to(pathlib.Path.cwd()) else name, flush=True)
        passed, failed = (passed + 1, failed) if not evidence.failures else (passed, failed + 1)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
