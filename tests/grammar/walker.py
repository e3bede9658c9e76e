"""Drives grammar_walk: random answers through the masks of a grammar, and which given texts the grammar takes."""
import json
import pathlib
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
TOOL = ROOT / "build/release/tests/grammar/grammar_walk"
SUITE = ROOT / ".cache/json-schema-tests"
SUITE_PACKAGE = "jsonschema==4.26.0"  # its source carries the official JSON Schema Test Suite


def run(jobs):
    """The answers of grammar_walk to these jobs, in order."""
    if not TOOL.exists():
        pytest.skip("grammar_walk is not built")
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    result = subprocess.run([TOOL], input=lines, capture_output=True, text=True, encoding="utf-8", timeout=500)
    assert result.returncode == 0, (result.stderr[-2000:], jobs[len(result.stdout.strip("\n").split("\n"))])
    answers = [json.loads(line) for line in result.stdout.strip("\n").split("\n")]
    assert len(answers) == len(jobs)
    return answers


def suite():
    """The folder with the official tests, fetched once from a package's source; skips where that cannot be had."""
    if not (SUITE / "tests/draft2020-12").is_dir():
        SUITE.mkdir(parents=True, exist_ok=True)
        fetched = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "jsonschema", "-d", str(SUITE), SUITE_PACKAGE],
                                 capture_output=True, text=True)
        archives = sorted(SUITE.glob("*.tar.gz"))
        if not archives:
            pytest.skip(f"the JSON Schema Test Suite cannot be fetched: {fetched.stderr[-200:]}")
        with tarfile.open(archives[0]) as archive:
            for member in archive.getmembers():
                inner = member.name.partition("/json/tests/")[2]
                if member.isfile() and inner.startswith(("draft7/", "draft2020-12/")):
                    target = SUITE / "tests" / inner
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.extractfile(member).read())
    return SUITE / "tests"
