"""Along the fp32 reference's own text, our best token is the reference's or as good as that.

20 prompts of 5 to 1,500 tokens from the Debian reference, 64 tokens of the reference's greedy text after each, both real
models. Where our best token is another, the reference's margin between the two must be below 4 times the rms error of our
log-probabilities (top 20 of each position), and there may be at most 1.25 times as many such positions as a peer engine has
(node-llama-cpp). KL divergence to the reference is taken over our top 20 tokens of each position and the rest as one, for
both engines over the same partition, on 2,000 tokens of text; ours may be above the peer's by 0.002.
make test: 4 prompts of 5 to 120 tokens, 16 tokens after each, and 200 tokens of text.
"""
import dataclasses
import gzip
import hashlib
import json
import pathlib
import re
import subprocess

import gguf
import numpy as np

import models
from reference.forward import Reference, log_softmax
from server import ROOT, Server

PROMPTS = [5, 8, 12, 16, 24, 32, 33, 48, 64, 96, 120, 160, 240, 320, 450, 600, 800, 1024, 1200, 1500]
KEPT = 1000            # best tokens of the reference that are kept of each position
TOP = 20
MARGIN = 4.0           # times the rms error
POSITIONS = 1.25       # times the peer's
KL = 0.002
CACHE = ROOT / ".cache" / "prove"
BOOK = "/usr/share/debian-reference/debian-reference.en.txt.gz"


@dataclasses.dataclass
class Found:
    positions: int = 0
    ours: int = 0              # positions where our best token is another than the reference's
    peers: int = 0
    worst_margin: float = 0.0  # the reference's margin at ours, in rms errors
    rms: float = 0.0
    peer_rms: float = 0.0
    kl: float = 0.0
    peer_kl: float = 0.0


def book():
    """Plain prose: lines that are mostly letters."""
    text = gzip.open(BOOK, "rt", encoding="utf-8").read()
    lines = [line.strip() for line in text.splitlines() if len(re.findall(r"[a-z ]", line)) > 0.8 * max(40, len(line))]
    return "\n".join(lines)[50_000:]   # the table of contents comes first


class Kept:
    """The best tokens of each position under the reference: ids and log-probabilities, both [positions, KEPT]."""

    def __init__(self, ids, scores):
        self.ids, self.scores = ids, scores
        self.rows = [dict(zip(i.tolist(), s.tolist())) for i, s in zip(ids, scores)]

    def score(self, position, token):
        """Its log-probability, or that of the last one kept, which is above it."""
        return self.rows[position].get(token, float(self.scores[position, -1]))

    def best(self, position):
        return int(self.ids[position, 0])


def keep(logits):
    scores = log_softmax(logits)
    ids = np.argpartition(-scores, KEPT, axis=-1)[:, :KEPT] if scores.shape[1] > KEPT else np.argsort(-scores, axis=-1)
    picked = np.take_along_axis(scores, ids, -1)
    order = np.argsort(-picked, axis=-1)
    return np.take_along_axis(ids, order, -1), np.take_along_axis(picked, order, -1)


class Judge:
    """The reference's texts and scores of one model, computed once and kept on disk."""

    def __init__(self, path):
        self.path, self.model = path, None
        self.key = hashlib.sha256(path.read_bytes() + (ROOT / "tests/reference/forward.py").read_bytes()).hexdigest()[:16]

    def _kept(self, what, compute):
        file = CACHE / f"{self.key}-{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]}.npz"
        if not file.exists():
            if self.model is None:
                self.model = Reference(self.path)
            CACHE.mkdir(parents=True, exist_ok=True)
            draft = file.with_suffix(".draft.npz")
            np.savez(draft, **compute(self.model))
            draft.rename(file)
        return np.load(file)

    def greedy(self, prompt, count):
        """(ids of the reference's own text, Kept of each)."""
        def compute(model):
            ids, logits = model.greedy(prompt, count)
            best, scores = keep(logits)
            return {"text": np.array(ids), "ids": best, "scores": scores}
        found = self._kept(["greedy", prompt, count], compute)
        return [int(t) for t in found["text"]], Kept(found["ids"], found["scores"])

    def score(self, tokens):
        def compute(model):
            model.clear()
            parts = [keep(model.extend(tokens[i:i + 128])) for i in range(0, len(tokens), 128)]
            return {"ids": np.concatenate([p[0] for p in parts]), "scores": np.concatenate([p[1] for p in parts])}
        found = self._kept(["score", tokens], compute)
        return Kept(found["ids"], found["scores"])


def token_strings(path):
    """{what the server writes for a token: its ids}."""
    reader = gguf.GGUFReader(path)
    pieces = reader.fields["tokenizer.ggml.tokens"].contents()
    kinds = reader.fields["tokenizer.ggml.token_type"].contents()
    bytewise = reader.fields["tokenizer.ggml.model"].contents() == "gpt2"
    strings = {}
    for token, (piece, kind) in enumerate(zip(pieces, kinds)):
        strings.setdefault(written(piece, kind, bytewise), []).append(token)
    return strings


def gpt2_bytes():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + n): b for n, b in enumerate(others)}


UNBYTE = gpt2_bytes()


def written(piece, kind, bytewise):
    if kind in (3, 4):
        return piece
    if kind == 6:
        data = bytes([int(piece[3:5], 16)])
    elif bytewise:
        data = bytes(UNBYTE[c] for c in piece) if all(c in UNBYTE for c in piece) else piece.encode()
    else:
        data = piece.replace("\u2581", " ").encode()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{b:02x}" for b in data)


def ours(server, tokens, first, strings, judge):
    """Scores of the positions from first on: [{id: logprob}]. A string of several ids means the one the reference likes best."""
    _, top = server.scores(tokens, top=TOP)
    rows = []
    for position, entry in enumerate(top[first:]):
        best = sorted(entry.items(), key=lambda item: -item[1])[:TOP]
        rows.append({max(strings[s], key=lambda t: judge.score(position, t)): score for s, score in best})
    return rows


def peer(path, jobs):
    """The same from the peer engine; jobs are (tokens, first, wanted ids of each position)."""
    job = {"model": str(path), "context": 2048, "threads": 2, "top": 1,
           "sequences": [{"ids": tokens[:-1], "from": first - 1, "wanted": wanted} for tokens, first, wanted in jobs]}
    file, out = CACHE / "peer.json", CACHE / "peer-scores.json"
    CACHE.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(job))
    result = subprocess.run([str(ROOT / ".venv/bin/node"), str(ROOT / "tests/peer/scores.mjs"), str(file), str(out)], capture_output=True, text=True, timeout=3000)
    if result.returncode:
        raise RuntimeError(f"the peer engine failed: {result.stderr[-500:]}")
    return [[{int(t): s for t, s in row.items()} for row in rows] for rows in json.loads(out.read_text())["sequences"]]


def divergence(judge, position, scores, partition):
    """KL of the reference to an engine over the tokens of a partition and the rest as one."""
    total, p_rest, q_rest = 0.0, 1.0, 1.0
    for token in partition:
        log_p, log_q = judge.score(position, token), scores[token]
        total += np.exp(log_p) * (log_p - log_q)
        p_rest -= np.exp(log_p)
        q_rest -= np.exp(log_q)
    return total + (p_rest * np.log(p_rest / q_rest) if p_rest > 1e-9 and q_rest > 1e-9 else 0.0)


def compare(path, prompts, after, kl_tokens, kl_part=500):
    found, judge, strings, text = Found(), Judge(path), token_strings(path), book()
    errors, peer_errors, divergences, peer_divergences, margins = [], [], [], [], []
    cases, texts = [], []
    with Server(path, "--context", 2048) as server:
        tokens = server.ok("/tokenize", {"content": text[:40000], "add_special": False})["tokens"]
        begin = server.ok("/tokenize", {"content": "", "add_special": True})["tokens"]
        at = 0
        for length in prompts:
            prompt = (begin + tokens[at:])[:length]
            at = (at + length) % (len(tokens) - 2000)
            answer, kept = judge.greedy(prompt, after)
            cases.append((prompt + answer, length, kept, ours(server, prompt + answer, length, strings, kept)))
        for start in range(0, kl_tokens, kl_part):
            part = (begin + tokens[3000 + start:])[:min(kl_part, kl_tokens - start)]
            kept = judge.score(part[:-1])
            texts.append((part, 1, kept, ours(server, part, 1, strings, kept)))
    theirs = peer(path, [(tokens_, first, [list(r) for r in rows]) for tokens_, first, _, rows in cases + texts])
    for (_, _, kept, rows), peers in zip(cases, theirs):
        for position, (mine, other) in enumerate(zip(rows, peers)):
            found.positions += 1
            best = kept.best(position)
            chosen, peers_chosen = max(mine, key=mine.get), max(other, key=other.get)
            errors += [score - kept.score(position, token) for token, score in mine.items()]
            peer_errors += [other[token] - kept.score(position, token) for token in mine]
            found.peers += peers_chosen != best
            if chosen != best:
                found.ours += 1
                margins.append(kept.score(position, best) - kept.score(position, chosen))
    for (_, _, kept, rows), peers in zip(texts, theirs[len(cases):]):
        for position, (mine, other) in enumerate(zip(rows, peers)):
            divergences.append(divergence(kept, position, mine, list(mine)))
            peer_divergences.append(divergence(kept, position, other, list(mine)))
    found.rms, found.peer_rms = (float(np.sqrt(np.mean(np.square(e)))) for e in (errors, peer_errors))
    found.worst_margin = max(margins, default=0.0) / found.rms
    found.kl, found.peer_kl = float(np.mean(divergences)), float(np.mean(peer_divergences))
    return found


def prove(evidence):
    for name in ("smollm2", "gemma3"):
        path = pathlib.Path(models.fetcher().models_folder()) / f"{name}.gguf"
        found = compare(path, PROMPTS, 64, 2000)
        evidence.row(name, **dataclasses.asdict(found))
        evidence.require(found.worst_margin < MARGIN, f"{name}: a margin of {found.worst_margin:.2f} rms errors")
        evidence.require(found.ours <= POSITIONS * found.peers, f"{name}: {found.ours} positions differ, the peer's are {found.peers}")
        evidence.require(found.kl - found.peer_kl <= KL, f"{name}: KL {found.kl:.5f}, the peer's {found.peer_kl:.5f}")
