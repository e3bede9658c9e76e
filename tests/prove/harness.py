"""lm-evaluation-harness runs a task of our own through its local-completions model and gets the reference's score.

The task asks for the more likely of four endings of 60 sentences. The harness sends lists of ids with echo and logprobs,
as it does to any OpenAI-like server, and takes the tokenizer from ours. Its accuracy may differ from that of the fp32
reference by the questions whose two best endings the reference separates by less than 4 rms errors, and its
log-likelihoods by our rms error.
make test: the same sums over 12 questions without the harness.
"""
import json
import pathlib
import subprocess
import sys

import numpy as np

import models
from reference.forward import Reference, log_softmax
from server import ROOT, Server

TASK = pathlib.Path(__file__).parent / "task"
RMS = 0.15   # per token, of a model of 4 to 8 bits

SUBJECTS = ["The capital of France is", "The opposite of hot is", "Two plus two is", "The colour of the sky is", "A baby dog is called a", "The sun rises in the",
            "Water freezes into", "The first month of the year is", "Bees make", "The king's wife is the", "Fish live in the", "We see with our"]
ANSWERS = ["Paris", "cold", "four", "blue", "puppy", "east", "ice", "January", "honey", "queen", "water", "eyes"]


def questions(count=60):
    """Documents with a text, four endings and the index of the right one; the same each time."""
    dice, documents = np.random.default_rng(12), []
    for number in range(count):
        right = number % len(SUBJECTS)
        others = [int(o) for o in dice.permutation(len(ANSWERS)) if o != right][:3]
        order = [int(o) for o in dice.permutation([right, *others])]
        lead = ["", "Everybody knows this. ", "It is often said: ", "Question and answer. ", "A simple fact: "][number // len(SUBJECTS) % 5]
        documents.append({"text": lead + SUBJECTS[right], "endings": [ANSWERS[o] for o in order], "label": order.index(right)})
    return documents


def tokens_of(server, document):
    """(tokens of the text, [tokens of each ending after it])."""
    def tokenize(text):
        return server.ok("/tokenize", {"content": text, "add_special": False})["tokens"]
    context = tokenize(document["text"])
    return context, [tokenize(f"{document['text']} {ending}")[len(context):] for ending in document["endings"]]


def reference_scores(path, server, documents):
    """Log-likelihoods [documents, endings] of the fp32 reference, over the server's tokens."""
    model, scores = Reference(path), []
    for document in documents:
        context, endings = tokens_of(server, document)
        model.clear()
        next_token = log_softmax(model.extend_last(context))
        scores.append([float(next_token[e[0]]) if len(e) == 1 else float(model.token_logprobs(context + e)[len(context):].sum()) for e in endings])
    return np.array(scores)


def server_scores(server, documents):
    """The same as the server scores them."""
    scores = []
    for document in documents:
        context, endings = tokens_of(server, document)
        scores.append([sum(server.scores(context + e)[0][len(context):]) for e in endings])
    return np.array(scores)


def harness_accuracy(server, name, folder):
    """Accuracy that lm-evaluation-harness finds."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "questions.jsonl").write_text("".join(json.dumps(d) + "\n" for d in questions()))
    (folder / "endings.yaml").write_text((TASK / "endings.yaml").read_text().replace("QUESTIONS", str(folder / "questions.jsonl")))
    out = folder / "out"
    command = [str(pathlib.Path(sys.executable).parent / "lm_eval"), "run", "--model", "local-completions", "--tasks", "endings", "--include_path", str(folder),
               "--model_args", f"model={name},base_url={server.url}/v1/completions,tokenizer_backend=remote,num_concurrent=2,max_retries=1", "--output_path", str(out)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=folder)
    if result.returncode:
        raise RuntimeError(f"lm_eval failed: {result.stderr[-1500:]}")
    newest = max(out.rglob("results*.json"), key=lambda p: p.stat().st_mtime)
    return json.loads(newest.read_text())["results"]["endings"]["acc,none"]


def prove(evidence):
    for name in ("smollm2", "gemma3"):
        path = pathlib.Path(models.fetcher().models_folder()) / f"{name}.gguf"
        documents = questions()
        with Server(path, "--context", 1024) as server:
            accuracy = harness_accuracy(server, name, ROOT / ".cache" / "prove" / f"harness-{name}")
            scores = reference_scores(path, server, documents)
        best = np.sort(scores, axis=1)
        close = int(np.sum(best[:, -1] - best[:, -2] < 4 * RMS))
        expected = float(np.mean(scores.argmax(axis=1) == [d["label"] for d in documents]))
        evidence.row(name, questions=len(documents), harness_accuracy=float(accuracy), reference_accuracy=expected, close_questions=close)
        evidence.require(abs(accuracy - expected) <= close / len(documents) + 1e-9, f"{name}: accuracy {accuracy}, the reference's {expected}")
