"""Regular expressions and GBNF against other readers: random patterns and texts, and answers written at random."""
import json
import random
import re

import walker


def pattern(rng, depth=0):
    def atom():
        kind = rng.randrange(8 if depth < 3 else 5)
        if kind < 3:
            return rng.choice("abc")
        if kind == 3:
            return rng.choice(["[ab]", "[^a]", "[a-c]", ".", r"\w", r"[^\w]"])
        if kind == 4:
            return rng.choice(["\"", r"\\", "é", r"\u00e9", r"\n"])
        return "(" + rng.choice(["", "?:"]) + pattern(rng, depth + 1) + ")"

    def term():
        return atom() + rng.choice(["", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}?", "{2,}"])

    def branch():
        anchors = rng.random() < 0.15
        return ("^" if anchors and rng.random() < 0.7 else "") + "".join(term() for _ in range(rng.randrange(1, 4))) + ("$" if anchors and rng.random() < 0.7 else "")

    return "|".join(branch() for _ in range(rng.choice([1, 1, 1, 2, 3])))


def texts(rng, alphabet="aaabbc\"\\é\n"):
    return ["".join(rng.choice(alphabet) for _ in range(rng.randrange(7))) for _ in range(60)]


def short(text):
    """Python's reader goes back and forth, exponentially on some patterns: long texts are not for it."""
    return len(text) < 14


def python(source):
    """The same in Python, whose $ also stands before a last line end and whose . takes \\r."""
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", source), re.ASCII)


def test_random_patterns_match_as_python_matches():
    rng = random.Random(20)
    sources = [pattern(rng) for _ in range(400)]
    samples = [texts(rng) for _ in sources]
    whole = walker.run([{"kind": "regex", "source": s, "walks": 5, "seed": n, "texts": t} for n, (s, t) in enumerate(zip(sources, samples))])
    searched = walker.run([{"kind": "schema", "source": {"type": "string", "pattern": s}, "walks": 5, "seed": n, "texts": [json.dumps(x, ensure_ascii=False) for x in t]}
                           for n, (s, t) in enumerate(zip(sources, samples))])
    kept = taken = written = 0
    for source, sample, full, found in zip(sources, samples, whole, searched):
        compiled = python(source)
        if "refused" in full:
            if "states" in full["refused"]["message"]:
                continue
            assert "no text" in full["refused"]["message"], (source, full)
            assert not any(compiled.fullmatch(t) for t in sample), source
        else:
            kept += 1
            for text, yes in zip(sample, full["taken"]):
                assert yes == bool(compiled.fullmatch(text)), (source, text)
                taken += yes
            for text in filter(short, full["written"]):
                assert compiled.fullmatch(text), (source, text)
                written += 1
        if "refused" in found:
            assert any(word in found["refused"]["message"] for word in ("no text", "states", "larger")), (source, found)
            continue
        for text, yes in zip(sample, found["taken"]):
            assert yes == bool(compiled.search(text)), (source, text)
        for text in filter(short, found["written"]):
            assert compiled.search(json.loads(text)), (source, text)
            written += 1
    print(f"\n{kept} of {len(sources)} patterns match something; {taken} texts taken, {written} written")
    assert kept > 300 and taken > 1000 and written > 1000


def test_json_mode_writes_objects():
    [answer] = walker.run([{"kind": "json", "walks": 400, "seed": 3}])
    assert len(answer["written"]) > 200
    for text in answer["written"]:
        assert isinstance(json.loads(text), dict)


def test_a_grammar_of_json_takes_json():
    source = r'''
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
# at most one space, or a line end and then some
ws ::= | " " | "\n" [ \t]{0,20}
'''
    documents = [json.dumps(d) for d in ({}, {"a": [1, -2.5, {"b": None}]}, {"é\n": [[], {}], "x": "y"})]
    [answer] = walker.run([{"kind": "gbnf", "source": source, "walks": 200, "seed": 4, "texts": documents + ["[]", "{", "{\"a\" 1}"]}])
    assert answer["taken"] == [True] * len(documents) + [False] * 3
    for text in answer["written"]:
        json.loads(text, strict=False)
