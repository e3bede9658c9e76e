"""A draft model makes answers as much faster as the cost tables say, and one that does not pay is left alone by itself.

The target is made from the draft's own file: behind every layer stand copies whose output projections are zero, so the logits are the
same and the cost is several times as much. The tables of both (`cadans bench --fit`) and the mean number of guesses a step foretell how
much faster its answers are; that must be within a tenth of what is measured. The same file as its own draft, and a draft of random
weights that never agrees, must both be left alone: at least 0.97 of the plain speed, and the record says why. Each request is asked
without guesses and with the model's in turn, on one server, and texts must be equal.

Beside that, outside of the server, the rule of Leviathan et al. and Chen et al. 2023 on the same texts: a draft that lacks some of the
target's layers, both distributions by the log-probabilities of their 20 likeliest tokens, and from these how often a guess would be
accepted by that rule (the sum of the smaller of both probabilities) and by noise that both share (a guess is right where both draw the
same). CADANS_TRIAL=1 does a small part of it, to try the script; its page is not evidence.
"""
import importlib.util
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import models
from prove.speculation import QUESTIONS
from server import Server, run

TRIAL = bool(os.environ.get("CADANS_TRIAL"))
TOKENS = 96 if TRIAL else 256
TIMES = 6
ASKED = QUESTIONS[:2] if TRIAL else QUESTIONS
REPEATS = 1 if TRIAL else 3
TOP = 20
INPUTS = ["tests/prove/speculation.py"]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, models.HERE / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def body(words, speculate, **more):
    return {"prompt": f"<|im_start|>user\n{words}<|im_end|>\n<|im_start|>assistant\n", "max_tokens": TOKENS, "ignore_eos": True, "temperature": 0,
            "return_token_ids": True, "speculate": speculate, **more}


def in_turn(evidence, server, label, **more):
    """Median of plain engine time over drafted engine time; what the records say, summed; and the last record's sentences."""
    ratios, told = [], {"drafted": 0, "accepted": 0, "tokens": 0, "held": {}}
    for turn in range(REPEATS):
        for number, words in enumerate(ASKED):
            seen = {each: server.ok("/v1/completions", body(words, each, **more), 600) for each in (["off", "model"] if (turn + number) % 2 else ["model", "off"])}
            evidence.require(seen["off"]["choices"][0]["token_ids"] == seen["model"]["choices"][0]["token_ids"], f"{label}: the text is that without guesses")
            ratios.append(seen["off"]["timings"]["predicted_ms"] / seen["model"]["timings"]["predicted_ms"])
            record = seen["model"]["cadans"]["speculation"]
            told["drafted"] += record["drafted"]
            told["accepted"] += record["accepted"]
            told["tokens"] += seen["model"]["timings"]["predicted_n"]
            for reason, steps in record["held"].items():
                told["held"][reason] = told["held"].get(reason, 0) + steps
            last = seen["model"]["cadans"]["id"]
    sentences = server.ok(f"/cadans/v1/requests/{last}/explanation?language=en")["sentences"]
    told["said"] = " ".join(s["text"] for s in sentences if s["about"] == "guesses")
    return statistics.median(ratios), min(ratios), told


def cost_of(path):
    done = run("bench", "--model", path, "--fit", "--json", timeout=900)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["cost"]


def step_ps(cost, rows, keys, verify):
    """flow/step_cost.h: a step of one sequence that draws from all its rows."""
    per_key = cost["prompt_key_ps"] if verify else cost["decode_key_ps"]
    return max(cost["weights_ps"], cost["row_ps"] * rows) + cost["step_ps"] + per_key * keys * rows + cost["logits_ps"] * rows


def foretold(target, draft, told, keys):
    steps = told["tokens"] - told["accepted"]
    guesses = told["drafted"] / steps
    with_guesses = steps * (step_ps(target, 1 + guesses, keys, True) + guesses * step_ps(draft, 1, keys, False))
    return told["tokens"] * step_ps(target, 1, keys, False) / with_guesses, guesses


def deeper(evidence, folder, small):
    large = pathlib.Path(folder) / "deep.gguf"
    tool("deepen_gguf").deepen(small, large, TIMES)
    costs = cost_of(large), cost_of(small)
    with Server(large, "--draft-model", small, "--context", 2048, ready_within=600) as server:
        for label, settings in {"greedy": {}, "sampled": {"temperature": 0.8, "seed": 3}}.items():
            speed, slowest, told = in_turn(evidence, server, f"{TIMES} times as deep, {label}", **settings)
            expected, guesses = foretold(*costs, told, 30 + TOKENS / 2)
            evidence.row(f"a target {TIMES} times as deep, {label}", speed=speed, slowest=slowest, foretold=expected, guesses_a_step=guesses,
                         accepted_of_drafted=told["accepted"] / max(1, told["drafted"]))
            evidence.require(0.9 <= speed / expected <= 1.1, f"{label}: what is gained is within a tenth of what the cost tables say")
            evidence.require(told["accepted"] >= 0.99 * told["drafted"] > 0, f"{label}: equal logits and equal noise draw equal tokens")


def left_alone(evidence, label, target, draft, reason, words):
    with Server(target, "--draft-model", draft, "--context", 2048, ready_within=600) as server:
        speed, slowest, told = in_turn(evidence, server, label)
        most = max(told["held"], key=told["held"].get)
        evidence.row(label, speed=speed, slowest=slowest, guesses_a_step=told["drafted"] / max(1, told["tokens"] - told["accepted"]), most_often_held=most)
        evidence.require(speed >= 0.97, f"{label}: at least 0.97 of the plain speed")
        evidence.require(most == reason and words in told["said"], f"{label}: the record says why ({most}; {told['said']!r})")


def distributions(path, texts):
    """Of each token of each text, the TOP likeliest that may stand there: {token: probability}, of all of these together 1."""
    out = []
    with Server(path, "--context", 2048, ready_within=600) as server:
        for ids in texts:
            answer = server.ok("/v1/completions", {"prompt": ids, "max_tokens": 0, "echo": True, "logprobs": TOP}, 600)
            for top in answer["choices"][0]["logprobs"]["top_logprobs"][1:]:
                whole = sum(math.exp(each) for each in top.values())
                out.append({token: math.exp(each) / whole for token, each in top.items()})
    return out


def by_rejection(p, q):
    return sum(min(p[token], q[token]) for token in p if token in q)


def by_shared_noise(p, q):
    """Both draw token i exactly where its noise beats all others' in both: 1 / sum over j of max(p_j / p_i, q_j / q_i)."""
    every = set(p) | set(q)
    return sum(1 / sum(max(p.get(j, 0) / p[i], q.get(j, 0) / q[i]) for j in every) for i in p if i in q)


def rules(evidence, folder, small):
    shallow = pathlib.Path(folder) / "shallow.gguf"
    layers = tool("deepen_gguf").deepen(small, shallow, without={22, 23, 24})
    with Server(small, "--draft-model", shallow, "--context", 2048, ready_within=600) as server:
        texts = []
        for number, words in enumerate(ASKED):
            answer = server.ok("/v1/completions", {**body(words, "off"), "temperature": 1, "seed": number, "top_k": TOP}, 600)
            texts.append(answer["choices"][0]["token_ids"])
    pairs = list(zip(distributions(small, texts), distributions(shallow, texts)))
    rejection, shared = (statistics.mean(rule(p, q) for p, q in pairs) for rule in (by_rejection, by_shared_noise))
    evidence.row(f"a draft of {layers} of the layers, by the rejection rule", accepted_of_drafted=rejection)
    evidence.row(f"a draft of {layers} of the layers, by shared noise", accepted_of_drafted=shared)
    evidence.require(shared <= rejection + 1e-9, "no coupling accepts more than the rejection rule")
    evidence.require(shared >= 0.8 * rejection, "shared noise costs little acceptance: at least 0.8 of the rule's")


def prove(evidence):
    small = models.real("smollm2")
    with tempfile.TemporaryDirectory(prefix="cadans-drafts-") as folder:
        deeper(evidence, folder, small)
        left_alone(evidence, "the same file as its own draft", small, small, "slow", "longer than they can save")
        never = pathlib.Path(folder) / "never.gguf"
        subprocess.run([sys.executable, str(models.MAKER), "tiny", "--vocab", str(small), "--type", "q8_0", "--mix", "1", "-o", str(never)], check=True,
                       stdout=subprocess.DEVNULL)
        left_alone(evidence, "a draft that never agrees", small, never, "unlikely", "not likely enough")
        rules(evidence, folder, small)
