#!/usr/bin/env python3
"""Runs cadans bench on three models and writes docs/performance.md: every figure in it comes from this script.

    tools/performance [--quick]        --quick: one repetition and shorter prompts, to see that it works
"""
import json
import os
import pathlib
import subprocess
import sys
import time

import models
from prove.evidence import processor

ROOT = pathlib.Path(__file__).parent.parent
BINARY = ROOT / "build" / "release" / "cadans"
PAGE = ROOT / "docs" / "performance.md"


def shapes_of_llama():
    """Random weights in the shapes of Llama 3.2 1B, Q4_K_M, with its vocabulary: about 0.8 GB, kept in .cache/models."""
    path = models.CACHE / "llama3.2-1b-q4_k_m.gguf"
    if not path.exists():
        vocabulary = models.npm_vocabulary("llama3_2")
        if vocabulary is None:
            sys.exit("performance: the vocabulary of Llama 3.2 is not installed (tools/setup test)")
        draft = path.with_suffix(".draft")
        models.CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, str(models.MAKER), "llama3.2-1b", "--vocab", str(vocabulary), "--type", "q4_k_m", "-o", str(draft)], check=True)
        draft.rename(path)
    return path


def bench(path, quick, **lists):
    """Records of cadans bench; lists are its comma-separated settings."""
    flags = [word for name, values in lists.items() for word in (f"--{name}", ",".join(map(str, values)))]
    command = [str(BINARY), "bench", "--model", str(path), *flags, "--repeat", "1" if quick else "5", "--json"]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=3600)
    if result.returncode:
        sys.exit(f"performance: {' '.join(command)} ended with {result.returncode}")
    return json.loads(result.stdout)


def share(record):
    for name, word in (("share_of_peak", "of integer-dot peak"), ("share_of_bandwidth", "of read bandwidth")):
        if record.get(name) is not None:
            return f"{record[name]:.0%} {word}"
    return ""


def table(records):
    lines = ["| phase | tokens | depth | batch | threads | tokens/s (median) | spread | share |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for r in records:
        speed = r["tokens_per_second"]
        lines.append(f"| {r['phase']} | {r['tokens']} | {r['depth']} | {r['batch']} | {r['threads']} | {speed['median']:.1f} | "
                     f"{speed['min']:.1f} to {speed['max']:.1f} | {share(r)} |")
    return lines


def main():
    quick = "--quick" in sys.argv[1:]
    threads = [len(os.sched_getaffinity(0))]
    folder = models.fetcher().models_folder()
    files = [("SmolLM2-135M-Instruct, Q4_1", folder / "smollm2.gguf"), ("Gemma 3 270M, Q4_K_M", folder / "gemma3.gguf"),
             ("Llama 3.2 1B shapes, random weights, Q4_K_M", shapes_of_llama())]
    lines = ["# Performance", "", "Printed by `make performance`; rates stand with the phase they belong to, medians with their spread.",
             "Read bandwidth is that of memory, probed on a block far larger than the caches: a model that fits the last-level cache can",
             "be read faster, and its share is then above 100 %. The probes run for a moment before the rows: where the host changes its",
             "clock between them, a share of the integer-dot peak can pass 100 % too.", "",
             f"- Machine: {processor()}", f"- Date: {time.strftime('%Y-%m-%d')}", ""]
    for title, path in files:
        print(f"performance: {title}", file=sys.stderr)
        records = bench(path, quick, prompt=[32, 128] if quick else [32, 128, 512, 1024], generate=[16] if quick else [64],
                        depth=[0] if quick else [0, 1024], threads=threads)
        records += bench(path, quick, prompt=[0], generate=[16] if quick else [64], batch=[2] if quick else [2, 4, 8, 16], threads=threads)
        isa = ", ".join(sorted({r["isa"] for r in records}))
        lines += [f"## {title}", "", f"Instruction set: {isa}", "", *table(records), ""]
        PAGE.write_text("\n".join(lines))
    print(f"performance: see {PAGE.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
