"""Lines of text in many scripts, the same on every machine that has the same packages.

Sources: Debian's bible-kjv-text (through the program `bible` of bible-kjv), debian-reference-en, manpages-de and -nl,
manual pages in whatever other languages are installed, program code, and lines made up from a seed: emoji, combining
marks, white space, digits, contractions, every assigned script.
"""

import glob
import gzip
import os
import random
import shutil
import subprocess
import sys
import unicodedata

SHARES = {"bible": 0.22, "debian-reference": 0.12, "manual pages (de, nl)": 0.25, "manual pages (other)": 0.08,
          "code": 0.15, "made up": 0.18}
MAN = "/usr/share/man"


def bible(program=None):
    program = program or shutil.which("bible")
    if not program:
        return []
    out = subprocess.run([program, "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return out.stdout.decode("utf-8", "replace").splitlines()


def read_lines(paths):
    lines = []
    for path in paths:
        opened = gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")
        with opened as file:
            lines += file.read().decode("utf-8", "replace").split("\n")
    return [line for line in lines if line]


def manual_pages(languages):
    paths = []
    for language in languages:
        paths += sorted(glob.glob(f"{MAN}/{language}/man*/*.gz"))
    return read_lines(paths)


def code():
    paths = sorted(glob.glob("/usr/include/*.h"))[:60] + sorted(glob.glob("/usr/lib/python3/dist-packages/*.py"))[:20]
    paths += sorted(glob.glob(os.path.dirname(os.__file__) + "/*.py"))[:40]
    lines = read_lines(paths)
    pairs = ["\n".join(lines[i:i + 3]) for i in range(0, len(lines) - 3, 7)]
    return lines + pairs


def alphabet(rng):
    """Assigned code points of this Python's Unicode version, all scripts alike: a block of 128 counts once."""
    blocks = {}
    for c in range(0x20, 0x30000):
        if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co"):
            blocks.setdefault(c >> 7, []).append(chr(c))
    return list(blocks.values())


def made_up(count, rng):
    blocks = alphabet(rng)
    emoji = [chr(c) for c in range(0x1F300, 0x1F650)] + ["\u2764\ufe0f", "\U0001F468\u200d\U0001F469\u200d\U0001F467",
             "\U0001F44D\U0001F3FD", "\U0001F1F3\U0001F1F1", "\u26f9\U0001F3FB\u200d\u2640\ufe0f", "1\ufe0f\u20e3"]
    words = ["don't", "I'LL", "we've", "it's", "'s", "'\u017fa", "naïve", "straße", "ΑΒΓδε", "ǅungla", "HTMLParser's", "x_y",
             "100", "1234567", "3.14", "٣٤٥", "Ⅷ", "½", "e\u0301", "a\u030a\u0327", "\u1112\u1161\u11ab", "한국어", "日本語の文", "中文",
             "\u0301", "</div>", "<table>", "foo/bar//baz", "a\tb", "(x)", "…", "—", "$1,000.00", "#include", "\u200b",
             "\ufeff", "\u00a0", "\u3000", "\u2028", "\u0085", "\r\n", "\r", "\n", "\n\n", "\n\n\n", "\t\t", "\x00", "\x1b[0m", "\x7f"]
    lines = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(1, 12)):
            kind = rng.random()
            if kind < 0.25:
                parts.append("".join(rng.choice(emoji) for _ in range(rng.randint(1, 4))))
            elif kind < 0.5:
                block = rng.choice(blocks)
                parts.append("".join(rng.choice(block) for _ in range(rng.randint(1, 8))))
            elif kind < 0.6:
                parts.append("".join(rng.choice(rng.choice(blocks)) for _ in range(rng.randint(1, 5))))
            elif kind < 0.7:
                parts.append(rng.choice([" ", "\n", "\t"]) * rng.randint(1, 40))
            else:
                parts.append(rng.choice(words))
        lines.append(rng.choice(["", " ", " ", "\n"]).join(parts))
    return lines


def corpus(count, seed=1, bible_program=None):
    """`count` lines as (source, line)."""
    rng = random.Random(seed)
    others = sorted(d for d in os.listdir(MAN) if not d.startswith("man") and d not in ("de", "nl")) if os.path.isdir(MAN) else []
    sources = {"bible": bible(bible_program),
               "debian-reference": read_lines(sorted(glob.glob("/usr/share/debian-reference/*.txt.gz"))
                                              + sorted(glob.glob("/usr/share/debian-reference/ch*.html"))),
               "manual pages (de, nl)": manual_pages(["de", "nl"]), "manual pages (other)": manual_pages(others),
               "code": code()}
    picked = []
    for name, lines in sources.items():
        if not lines:
            print(f"corpus: no text from {name}; made-up lines take its place", file=sys.stderr)
        wanted = int(count * SHARES[name])
        step = max(1, len(lines) // max(1, wanted))
        picked += [(name, line) for line in lines[::step][:wanted]]
    return picked + [("made up", line) for line in made_up(count - len(picked), rng)]
