"""10,000 damaged GGUF files, half of them blindly and half by field, are refused in words or read, under sanitizers.

Each refusal must name the field and the offset.  make test: 1,000 against the release build.
"""
import subprocess

from prove.mutated_bodies import sanitized
from server import ROOT


def run(program, count, first=0):
    """(exit status, its last line, the end of what went to stderr)."""
    result = subprocess.run([str(program), str(count), str(first)], capture_output=True, text=True, errors="replace", timeout=3600)
    return result.returncode, (result.stdout.strip().splitlines() or [""])[-1], result.stderr[-1500:]


def prove(evidence):
    program = sanitized("gguf_mutations", "tests/fuzz/gguf_mutations")
    for part in range(10):
        status, said, trouble = run(program, 1000, part * 1000)
        evidence.row(f"seeds {part * 1000} to {part * 1000 + 999}", status=status, found=said)
        evidence.require(status == 0, f"part {part}: status {status}: {trouble}")
