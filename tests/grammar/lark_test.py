"""Lark's language against PyPI's lark: what is written at random parses, and texts are taken as its Earley parser takes them."""
import random

import lark
import pytest

import walker

GRAMMARS = {
    "sums": r"""
        ?start: sum
        ?sum: product | sum "+" product -> add | sum "-" product
        ?product: atom | product "*" atom
        ?atom: NUMBER | "-" atom | NAME | "(" sum ")"
        NAME: /[a-c]/
        %import common.NUMBER
        %import common.WS_INLINE
        %ignore WS_INLINE
    """,
    "json": r"""
        ?start: value
        ?value: object | array | string | SIGNED_NUMBER | "true" | "false" | "null"
        array: "[" [value ("," value)*] "]"
        object: "{" [pair ("," pair)*] "}"
        pair: string ":" value
        string: ESCAPED_STRING
        %import common (ESCAPED_STRING, SIGNED_NUMBER, WS)
        %ignore WS
    """,
    "commands": r"""
        // what an agent may run
        start: command (";" command)* [";"]
        command.2: ("ls" | "cat"i) PATH? | "head" "-n" COUNT PATH
        PATH: ("/" /[a-z]{1,3}/)+ | "."
        COUNT: DIGIT ~ 1..2
        DIGIT: "0".."9"
        %ignore " "
        %ignore "\t"
    """,
    "classes": r"""
        start: (A | B | C | D)+
        A: /[^\s,]\d\w/
        B: /\S\W/i
        C: /x.y/s
        D: /[]\-a]{2}(?:\.|\/)/
    """,
    "nested": r"""
        start: a
        a: b "x" | "y" c? | a "!"
        b: ["(" a ")"] "z"~2..3
        c: "," a | "," "é" "\u00e9\n\t\x41"
    """,
}


def parser(source):
    return lark.Lark(source, parser="earley", lexer="dynamic_complete")


def parses(reader, text):
    try:
        reader.parse(text)
        return True
    except lark.exceptions.LarkError:
        return False


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_what_is_written_parses(name):
    source, reader, whole = GRAMMARS[name], parser(GRAMMARS[name]), 0
    for answer in walker.run([{"kind": "lark", "source": source, "walks": 40, "seed": seed} for seed in range(4)]):
        for text in answer["written"]:
            if len(text) > 60:   # its reader takes time that grows with the cube
                continue
            whole += 1
            assert parses(reader, text), text
    assert whole > 20


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_texts_are_taken_as_lark_takes_them(name):
    """Of texts near the grammar: none is taken that does not parse, and most that parse are taken (white space has bounds)."""
    source, reader, rng = GRAMMARS[name], parser(GRAMMARS[name]), random.Random(7)
    [seen] = walker.run([{"kind": "lark", "source": source, "walks": 60, "seed": 9}])
    texts = [text for text in seen["written"] if len(text) <= 40]
    for text in list(texts):
        for _ in range(6):
            at, more = rng.randrange(len(text) + 1), rng.choice([" ", "a", "1", ")", ",", "x", "-", ""])
            texts.append(text[:at] + more + text[at + rng.randrange(2):])
    [answer] = walker.run([{"kind": "lark", "source": source, "walks": 0, "seed": 0, "texts": texts}])
    both = one = 0
    for text, taken in zip(texts, answer["taken"]):
        good = parses(reader, text)
        assert good or not taken, text
        both += good and taken
        one += good and not taken and text == text.rstrip()   # nothing that is ignored is written at the end
    assert both > 20 and one <= both / 20, (both, one)
