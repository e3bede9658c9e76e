"""Writes the vocabulary of a real model for grammar_bench: a line a token, its bytes in hexadecimal, empty for no text.

    vocabularies.py TOKENIZER_PACKAGE > FILE        such as llama3_2 or gemma3, from tests/tokenizers/node_modules
"""
import json
import pathlib
import sys

PACKAGES = pathlib.Path(__file__).parent.parent / "tokenizers/node_modules/@lenml"


def byte_alphabet():
    """Letters of byte-level vocabularies → bytes, as GPT-2's encoder has it."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {chr(b): b for b in plain}, 0
    for byte in range(256):
        if byte not in plain:
            letters[chr(256 + extra)] = byte
            extra += 1
    return letters


def tokens(package):
    name = next((PACKAGES / f"tokenizer-{package}").rglob("tokenizer.json"))
    data = json.loads(name.read_text())
    vocabulary = data["model"]["vocab"]
    special = {t["id"] for t in data["added_tokens"]}
    size = 1 + max([*vocabulary.values(), *special])
    out = [b""] * size
    letters = byte_alphabet()
    pieces = "▁the" in vocabulary
    for text, number in vocabulary.items():
        if number in special:
            continue
        if not pieces:
            out[number] = bytes(letters[c] for c in text)
        elif len(text) == 6 and text.startswith("<0x"):
            out[number] = bytes([int(text[3:5], 16)])
        else:
            out[number] = text.replace("▁", " ").encode()
    return out


if __name__ == "__main__":
    for token in tokens(sys.argv[1]):
        print(token.hex())
