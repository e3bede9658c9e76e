#!/usr/bin/env python3
"""Reads the machine code of the AVX2 unit: no inner loop of a product may move its integer sums through memory.

Compilers differ by a factor of 1.7 on these loops when they spill. What an innermost loop (a jump back that encloses
no other) has to write to the stack is its f32 sums, once per fold: sixteen registers hold 4 x 2 integer sums or 4 x 2
f32 sums, not both. Three quarters as much again are left for sums of two runs, and as much again in loops that unpack
weights as they go; a compiler that spills its sums writes several times that.
Loops over f32 have no such excuse. Reads are printed but not judged: constants may live where the compiler likes.
Every form of weights must show such a loop. Instructions per product are printed, so that a change of them is seen.

usage: check_inner_loops.py OBJECT
"""

import collections
import re
import subprocess
import sys

# What a loop over f32 products holds besides them.
FLOAT_LOOP = ("vbroadcastss vmovups vmovaps vcvtph2ps vpmovzxwd vpslld vpmovsxbd vcvtdq2ps vmulps add sub cmp jne lea mov movslq "
              "inc shr and").split()
INTEGER_PRODUCTS, FLOAT_PRODUCTS = 32, 8  # products of one vpmaddubsw, of one vfmadd on eight lanes


def functions(path):
    """Yields (name, [(address, text)]) for each function of the object."""
    text = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", path], capture_output=True, text=True, check=True)
    for block in text.stdout.split("\n\n"):
        head = re.match(r"[0-9a-f]+ <(.*)>:\n", block)
        if head:
            lines = re.findall(r"^ +([0-9a-f]+):\t(.*)$", block, re.M)
            yield head.group(1), [(int(address, 16), code) for address, code in lines]


def loops_of(code):
    """Yields (first, last) of each loop: a jump back and what it encloses."""
    place = {address: i for i, (address, _) in enumerate(code)}
    for i, (_, text) in enumerate(code):
        jump = re.match(r"j\w+ +([0-9a-f]+)", text)
        target = place.get(int(jump.group(1), 16)) if jump else None
        if target is not None and target <= i:
            yield target, i


def products_of(loop):
    """How many instructions of a loop multiply: (integers, floats); (0, 0) where it is not a loop of products."""
    count = collections.Counter(text.split()[0] for text in loop)
    integer = count["vpmaddubsw"]
    if integer >= 8:
        return integer, 0
    fma = sum(n for op, n in count.items() if op.startswith("vfmadd") and op.endswith("ps"))
    return 0, fma if fma >= 4 and all(op in FLOAT_LOOP or op.startswith("vfmadd") for op in count) else 0


def innermost_loops(code):
    """Yields the instructions of each loop of products that encloses no other; small loops that only fetch do not count."""
    spans = [span for span in set(loops_of(code)) if any(products_of([text for _, text in code[span[0]:span[1] + 1]]))]
    for first, last in sorted(spans):
        if not any((f, l) != (first, last) and first <= f and l <= last for f, l in spans):
            yield [text for _, text in code[first:last + 1]]


def moves(loop):
    """Counts vector instructions that read the stack, and those that write it."""
    stack = [text for text in loop if text.startswith("v") and re.search(r"\(%r[sb]p", text)]
    writes = sum(bool(re.search(r"\(%r[sb]p[^)]*\)$", text)) for text in stack)
    return len(stack) - writes, writes


def short(name):
    name = name.replace("cadans::kernels::", "").replace("(anonymous namespace)::", "").replace("(WeightType)", "type ")
    return re.sub(r"\(.*|^void ", "", name)[:80]


def main():
    failures, sums, forms, judged = [], 0, set(), set()
    print(f"{'instructions':>12} {'a product':>10} {'stack reads':>12} {'writes':>7}  function")
    for name, code in functions(sys.argv[1]):
        form = re.search(r"direct_panel<.*?(FormOf<[^>]*>)", name)
        forms |= {form.group(1)} if form else set()
        for loop in innermost_loops(code):
            integer, fma = products_of(loop)
            reads, writes = moves(loop)
            folds = sum(text.startswith("vcvtdq2ps") for text in loop)
            unpacks = any(text.startswith("vpand ") for text in loop)
            allowed = (2.5 if unpacks else 1.75) * folds if integer else 1
            amount = integer * INTEGER_PRODUCTS if integer else fma * FLOAT_PRODUCTS
            print(f"{len(loop):>12} {len(loop) / amount:>10.4f} {reads:>12} {writes:>7}  {short(name)}")
            judged |= {form.group(1)} if form else set()
            sums += not integer
            if writes > allowed:
                failures.append(f"{short(name)}: {writes} writes to the stack, not at most {allowed:.0f}")
    failures += [f"no inner loop of a product was found for {form}" for form in sorted(forms - judged)]
    if not judged or not sums:
        failures.append("no inner loops of products were found")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
