#!/usr/bin/python3
"""Writes a GGUF model with the same logits as another and several times its cost, or one without some of its layers.

    python3 deepen_gguf.py IN.gguf OUT.gguf --times N
    python3 deepen_gguf.py IN.gguf OUT.gguf --without A,B,...

Behind every layer N - 1 copies of it are put whose output projections (attn_output, ffn_down) are zero: they compute all that a layer
computes and add nothing. So IN drafts for OUT what OUT draws itself, and what that saves depends on costs alone. Without some layers a model is a draft that is right
now and then. For families whose layers are all alike: not gemma3, where every sixth differs. Of the metadata only the number of layers changes. Needs the standard library only.
"""
import argparse
import re
import struct

SIZE = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, UINT32 = 8, 9, 4
BLOCK = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110), 12: (256, 144),
         13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2), 39: (32, 17)}   # type: weights and bytes of a block
ALIGNMENT = 32
SILENT = ("attn_output.weight", "ffn_down.weight")


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0]

    def text(self):
        length = self.take("Q")
        self.at += length
        return bytes(self.data[self.at - length:self.at]).decode()

    def skip(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            inner, count = self.take("I"), self.take("Q")
            for _ in range(count if inner == STRING else 0):
                self.text()
            self.at += 0 if inner == STRING else count * SIZE[inner]
        else:
            self.at += SIZE[kind]


def text(words):
    return struct.pack("<Q", len(words.encode())) + words.encode()


def padded(length):
    return -(-length // ALIGNMENT) * ALIGNMENT


def deepen(source, target, times=1, without=()):
    data = memoryview(source.read_bytes())
    reader = Reader(data)
    if bytes(data[:4]) != b"GGUF":
        raise SystemExit(f"{source} is no GGUF file")
    reader.at = 4
    version, tensors, entries = reader.take("I"), reader.take("Q"), reader.take("Q")
    metadata, layers = [], None
    for _ in range(entries):
        begin, key = reader.at, reader.text()
        kind, value_at = reader.take("I"), reader.at
        reader.skip(kind)
        if key == "general.alignment":
            raise SystemExit("files with an alignment of their own are not read here")
        if key.endswith(".block_count"):
            layers = struct.unpack_from("<I", data, value_at)[0]
            places = {layer: place for place, layer in enumerate(layer for layer in range(layers) if layer not in without)}
            metadata.append(text(key) + struct.pack("<II", UINT32, len(places) * times))
        else:
            metadata.append(bytes(data[begin:reader.at]))
    infos = []
    for _ in range(tensors):
        name, dims = reader.text(), []
        for _ in range(reader.take("I")):
            dims.append(reader.take("Q"))
        infos.append((name, dims, reader.take("I"), reader.take("Q")))
    base = padded(reader.at)
    heads, payloads, offset = [], [], 0
    for name, dims, kind, at in infos:
        count = 1
        for dim in dims:
            count *= dim
        weights, size = BLOCK[kind]
        payload = data[base + at:base + at + count // weights * size]
        layer = re.match(r"blk\.(\d+)\.(.*)", name)
        if layer and int(layer[1]) in without:
            continue
        copies = [(f"blk.{places[int(layer[1])] * times + copy}.{layer[2]}", copy > 0 and layer[2] in SILENT) for copy in range(times)] if layer else [(name, False)]
        for each, silent in copies:
            heads.append(text(each) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}QIQ", *dims, kind, offset))
            payloads.append(bytes(len(payload)) if silent else payload)
            offset += padded(len(payload))
    with target.open("wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", version, len(heads), entries) + b"".join(metadata) + b"".join(heads))
        out.write(bytes(padded(out.tell()) - out.tell()))
        for payload in payloads:
            out.write(payload)
            out.write(bytes(padded(len(payload)) - len(payload)))
    return len(places) * times


if __name__ == "__main__":
    import pathlib
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--without", type=lambda words: {int(word) for word in words.split(",")}, default=set())
    given = parser.parse_args()
    print(f"{deepen(given.source, given.target, given.times, given.without)} layers in {given.target}")
