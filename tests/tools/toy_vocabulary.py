#!/usr/bin/env python3
"""Trains a byte-level BPE vocabulary of about 500 tokens, so that test models are small and need no download.

    python3 toy_vocabulary.py OUT/tokenizer.json

The same text always gives the same vocabulary. Models made with it name the pre-tokenizer "llama-bpe".
"""
import sys

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

SIZE = 1024
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEXT = """The river keeps its own time, and so does the miller who lives beside it. In spring the water runs high and the
wheel turns day and night; in summer it turns when it can. He writes down what he grinds: wheat, rye, oats, 12 sacks, 7 sacks,
3 sacks. "How long will it take?" ask the farmers, and he answers them honestly: this long for the stones, that long for the
sacks, and so much for waiting your turn. De molenaar weet hoe laat het is zonder klok. Der Fluss hat seine eigene Zeit.
La rivière garde son propre temps. def grind(sacks: list[int]) -> int: return sum(sacks) # all of them
"""


def main(path):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=SIZE, special_tokens=SPECIAL, min_frequency=1, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.save(path)


if __name__ == "__main__":
    main(sys.argv[1])
