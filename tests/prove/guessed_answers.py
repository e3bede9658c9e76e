"""With guesses every answer is token for token that without: 500 prompts, each drafter, several chunkings, greedy and sampled.

A real model answers 500 prompts (questions, texts to quote and to edit, lists to go on with, random ids) in turn greedily and at a
temperature, without guesses and with each drafter, under several sizes of the pieces in which prompts are read, eight at a time, so
that steps hold several answers. Ids and log-probabilities must be equal. CADANS_TRIAL=1 takes 20 prompts; its page is not evidence.
"""
import concurrent.futures
import os
import random

import models
from prove.speculation import PASSAGES, QUESTIONS
from server import Server

TRIAL = bool(os.environ.get("CADANS_TRIAL"))
PROMPTS = 20 if TRIAL else 500
TOKENS = 64
CHUNKS = [32, 256] if TRIAL else [1, 7, 32, 256]
DRAFTERS = ["lookup", "suffix", "auto"]


def body(number):
    draw = random.Random(number)
    passage = " ".join(draw.sample(PASSAGES[draw.randrange(4)].split(" "), 30))
    kinds = [f"{draw.choice(QUESTIONS)} Answer in {draw.randrange(2, 9)} sentences.", f"Repeat this word for word: {passage}",
             f"Write this once more, with every 'the' as 'a': {passage}",
             "Go on with the list: " + ", ".join(f"{draw.choice('abc')}{n}" for n in range(draw.randrange(5, 25)))]
    prompt = [draw.randrange(1000, 1000 + draw.choice([5, 50, 5000])) for _ in range(draw.randrange(5, 120))] if number % 5 == 4 else kinds[number % 5]
    sampling = {"temperature": 0} if number % 2 else {"temperature": draw.choice([0.3, 0.8, 1.2]), "seed": number, "top_p": draw.choice([1, 0.9])}
    return {"prompt": prompt, "max_tokens": TOKENS, "logprobs": 2, "return_token_ids": True, "user": str(number % 3), **sampling}


def answers(server, speculate):
    def one(number):
        answer = server.ok("/v1/completions", {**body(number), "speculate": speculate}, 600)
        choice = answer["choices"][0]
        return (choice["token_ids"], choice["text"], choice["finish_reason"], choice["logprobs"]), answer["cadans"]["speculation"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, range(PROMPTS)))


def prove(evidence):
    plain = None
    for chunk in CHUNKS:
        flags = ["--policy", "static-chunk", "--prefill-chunk", chunk]
        with Server(models.real("smollm2"), *flags, "--context", 2048) as server:
            if plain is None:
                plain = [answer for answer, _ in answers(server, "off")]
            for drafter in DRAFTERS:
                seen = answers(server, drafter)
                differ = sum(answer != expected for (answer, _), expected in zip(seen, plain))
                accepted, drafted = (sum(told[what] for _, told in seen) for what in ("accepted", "drafted"))
                evidence.row(f"{drafter}, prompts in pieces of {chunk}", answers=len(seen), differ=differ, tokens=sum(len(a[0]) for a, _ in seen),
                             drafted=drafted, accepted=accepted)
                evidence.require(differ == 0, f"{drafter}, pieces of {chunk}: every answer is that without guesses")
                evidence.require(accepted > PROMPTS, f"{drafter}, pieces of {chunk}: guesses come, or this shows nothing")
