"""Masks and compiling beside PyPI's xgrammar and llguidance: the same vocabularies, schemas and walks by chance.

Each engine compiles every schema and then makes masks along random answers of its own, on one thread; ours is
build/release/src/grammar/grammar_bench, the peers are called from Python (a call costs a microsecond or two there). What an
engine refuses is counted; whether it keeps what it does not refuse is the validator's to say: of each engine's whole answers,
those that PyPI's jsonschema rejects. A peer that is not installed is left out with a line that says so:
    pip install xgrammar llguidance     (xgrammar asks for torch at its import, and this script uses none of it)
CADANS_SMALL=1 takes few schemas, to try the script; its page is not evidence.
"""
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

import jsonschema
import numpy as np

from server import ROOT

sys.path.insert(0, str(ROOT / "tests" / "grammar"))
import vocabularies   # noqa: E402
import walker         # noqa: E402

INPUTS = ["tests/grammar/schemas.json", "tests/grammar/vocabularies.py"]
SMALL = bool(os.environ.get("CADANS_SMALL"))
VOCABULARIES = ["llama3_2"] if SMALL else ["llama3_2", "gemma3"]
WALKS, TOKENS = (1, 40) if SMALL else (2, 200)
BENCH = ROOT / "build/release/src/grammar/grammar_bench"


def schemas():
    """Our own, and those of the official test suite."""
    ours = [case["schema"] for case in json.loads((ROOT / "tests/grammar/schemas.json").read_text())["kept"]]
    if SMALL:
        return ours[:8]
    suite = [group["schema"] for path in sorted((walker.suite() / "draft2020-12").glob("*.json")) for group in json.loads(path.read_text())]
    return ours + [schema for schema in suite if isinstance(schema, dict)]


def percentiles(times):
    return {"p50_us": statistics.median(times), "p99_us": float(np.percentile(times, 99)), "max_us": max(times)} if times else {}


class XGrammar:
    def __init__(self, tokens, end):
        import xgrammar
        self.library, self.size = xgrammar, len(tokens)
        info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[end])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.bits = np.full((1, (len(tokens) + 31) // 32), -1, np.int32)

    def compile(self, schema):
        return self.compiler.compile_json_schema(json.dumps(schema))

    def start(self, compiled):
        return self.library.GrammarMatcher(compiled)

    def mask(self, matcher):
        matcher.fill_next_token_bitmask(self.bits)

    def allowed(self, matcher):
        return np.unpackbits(self.bits[0].view(np.uint8), bitorder="little")[:self.size].nonzero()[0]

    def take(self, matcher, token):
        return matcher.accept_token(int(token))


class LlGuidance:
    def __init__(self, tokens, end):
        import llguidance

        class Tokens:
            eos_token_id, bos_token_id, special_token_ids = end, None, [end]

            def __init__(self):
                self.tokens = tokens

            def __call__(self, text):
                return [tokens.index(bytes([byte])) for byte in (text if isinstance(text, bytes) else text.encode())]

        self.library, self.size = llguidance, len(tokens)
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens()))
        self.bits = np.zeros((self.size + 31) // 32, np.int32)

    def compile(self, schema):
        made = self.library.LLMatcher(self.tokenizer, self.library.LLMatcher.grammar_from_json_schema(json.dumps(schema)), log_level=0)
        if made.is_error():
            raise ValueError(made.get_error())
        return made

    def start(self, compiled):
        compiled.reset()
        return compiled

    def mask(self, matcher):
        matcher.unsafe_compute_mask_ptr(self.bits.ctypes.data, self.bits.nbytes)

    def allowed(self, matcher):
        return np.unpackbits(self.bits.view(np.uint8), bitorder="little")[:self.size].nonzero()[0]

    def take(self, matcher, token):
        return matcher.consume_token(int(token))


def measure(engine, tokens, end, given):
    """(compile times, mask times, refused, whole answers, rejected ones)"""
    compiling, masks, refused, whole, rejected = [], [], 0, 0, 0
    for number, schema in enumerate(given):
        dice = random.Random(number)
        begin = time.perf_counter()
        try:
            compiled = engine.compile(schema)
        except Exception:   # each library has kinds of its own
            refused += 1
            continue
        finally:
            compiling.append((time.perf_counter() - begin) * 1e6)
        for _ in range(WALKS):
            try:
                matcher, text = engine.start(compiled), b""
                for _ in range(TOKENS):
                    begin = time.perf_counter()
                    engine.mask(matcher)
                    masks.append((time.perf_counter() - begin) * 1e6)
                    allowed = engine.allowed(matcher)
                    if len(allowed) == 0:
                        break
                    token = dice.choice(allowed)
                    if token == end or not engine.take(matcher, token):
                        whole += int(token == end)
                        rejected += int(token == end and not valid(schema, text))
                        break
                    text += tokens[token]
            except Exception as error:
                print(f"   {type(engine).__name__}: {type(error).__name__}: {str(error)[:100]}", flush=True)
    return compiling, masks, refused, whole, rejected


def valid(schema, text):
    try:
        jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema).validate(json.loads(text))
        return True
    except Exception:   # no JSON, not valid, or a schema that the validator cannot follow
        return False


def ours(evidence, name, tokens, given):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as words, tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        words.write("".join(token.hex() + "\n" for token in tokens))
        words.flush()
        json.dump(given, file)
        file.flush()
        done = subprocess.run([str(BENCH), words.name, file.name, str(WALKS), str(TOKENS)], capture_output=True, text=True, timeout=1200)
    assert done.returncode in (0, 1), done.stderr
    compiled = re.search(r"(\d+) schemas, (\d+) refused; compiling takes (\d+) us \(P50\), (\d+) us \(P99\), (\d+) us at most", done.stdout)
    masks = re.search(r"(\d+) masks: ([\d.]+) us \(P50\), [\d.]+ us \(P90\), ([\d.]+) us \(P99\), ([\d.]+) us at most", done.stdout)
    evidence.row(f"Cadans, {name}", tokens=len(tokens), schemas=int(compiled[1]), refused=int(compiled[2]), compile_p50_us=float(compiled[3]),
                 compile_p99_us=float(compiled[4]), compile_max_us=float(compiled[5]), masks=int(masks[1]), mask_p50_us=float(masks[2]),
                 mask_p99_us=float(masks[3]), mask_max_us=float(masks[4]))
    evidence.require(SMALL or done.returncode == 0, f"{name}: masks and compiling keep the limits of grammar_bench")


def prove(evidence):
    subprocess.run([str(ROOT / "tools" / "build"), "grammar_bench"], check=True)
    given = schemas()
    for name in VOCABULARIES:
        tokens = vocabularies.tokens(name)
        ours(evidence, name, tokens, given)
        end = next(i for i, token in enumerate(tokens) if not token)
        for kind in (XGrammar, LlGuidance):
            try:
                engine = kind(tokens, end)
            except ImportError as error:
                print(f"   {kind.__name__} is left out: {error}", flush=True)
                continue
            compiling, masks, refused, whole, rejected = measure(engine, tokens, end, given)
            evidence.row(f"{kind.__name__} {getattr(engine.library, '__version__', '')}, {name}", tokens=len(tokens), schemas=len(given), refused=refused,
                         **{f"compile_{k}": v for k, v in percentiles(compiling).items()}, masks=len(masks),
                         **{f"mask_{k}": v for k, v in percentiles(masks).items()}, whole_answers=whole, rejected_by_jsonschema=rejected)
