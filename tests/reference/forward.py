"""The forward pass of each supported family in plain fp32 numpy, over the weights of a GGUF file.

This is the judge of the server's scores, so it shares nothing with it: the file is read and the weights are
dequantized by the `gguf` package, attention is the textbook formula over all positions, and nothing is fused.

    model = Reference("model.gguf")
    logits = model.logits([1, 2, 3])              # [3, vocabulary], float32
    scores = model.token_logprobs([1, 2, 3])      # log p(token i | tokens before i), nan for the first
    model.greedy([1, 2, 3], 64)                   # ids, and the logits that chose them

Sources: Llama (Touvron et al. 2023), rotary embeddings (Su et al. 2021), RMS norm (Zhang & Sennrich 2019), gated units
(Shazeer 2020), Qwen2 and Qwen3 technical reports, Gemma 3 technical report (2025).
"""
import dataclasses
import math

import gguf
import numpy as np

GEMMA3_PATTERN = 6            # every sixth layer attends to everything
GEMMA3_LOCAL_BASE = 10000.0   # rope base of the layers with a window
ROWS = 512                    # rows of a prompt that are computed at once, to bound memory


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(eps)) * weight


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)))


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@dataclasses.dataclass
class Shape:
    """What the forward pass must know of a file's metadata."""
    family: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    eps: float
    rope_base: float
    rope_scale: float
    window: int
    context: int


class Reference:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.shape = read_shape(reader)
        self.weights = {t.name: dequantize(t) for t in reader.tensors}
        self.vocabulary = self.weights["token_embd.weight"].shape[0]
        self.clear()

    def clear(self):
        """Forgets the keys and values of the tokens seen."""
        self.keys = [None] * self.shape.layers
        self.values = [None] * self.shape.layers
        self.seen = 0

    def logits(self, tokens):
        """Logits [tokens, vocabulary] after each token of a fresh sequence."""
        self.clear()
        return self.extend(tokens)

    def extend(self, tokens):
        """Logits after each of the tokens, which follow those seen since clear()."""
        return np.concatenate([self._head(self._rows(tokens[i:i + ROWS])) for i in range(0, len(tokens), ROWS)])

    def extend_last(self, tokens):
        """Logits after the last of the tokens only: for long prompts and large vocabularies."""
        for i in range(0, len(tokens), ROWS):
            rows = self._rows(tokens[i:i + ROWS])
        return self._head(rows[-1:])[0]

    def token_logprobs(self, tokens):
        scores = log_softmax(self.logits(tokens))
        return np.concatenate([[np.nan], scores[np.arange(len(tokens) - 1), tokens[1:]]])

    def greedy(self, tokens, count):
        """The reference's own text: (ids [count], logits [count, vocabulary] that chose each)."""
        self.clear()
        last, ids, rows = self.extend_last(tokens), [], []
        for _ in range(count):
            ids.append(int(np.argmax(last)))
            rows.append(last)
            last = self.extend_last(ids[-1:])
        return ids, np.stack(rows)

    def _rows(self, tokens):
        s, w = self.shape, self.weights
        positions = np.arange(self.seen, self.seen + len(tokens))
        x = w["token_embd.weight"][np.asarray(tokens)]
        if s.family == "gemma3":
            x = x * np.float32(math.sqrt(s.width))
        for layer in range(s.layers):
            x = x + self._post(layer, "attention", self._attention(layer, rms_norm(x, self._of(layer, "attn_norm"), s.eps), positions))
            x = x + self._post(layer, "ffw", self._feed_forward(layer, rms_norm(x, self._of(layer, "ffn_norm"), s.eps)))
        self.seen += len(tokens)
        return x

    def _head(self, x):
        w = self.weights
        return rms_norm(x, w["output_norm.weight"], self.shape.eps) @ w.get("output.weight", w["token_embd.weight"]).T

    def _of(self, layer, name):
        return self.weights[f"blk.{layer}.{name}.weight"]

    def _post(self, layer, name, x):
        weight = self.weights.get(f"blk.{layer}.post_{name}_norm.weight")
        return x if weight is None else rms_norm(x, weight, self.shape.eps)

    def _feed_forward(self, layer, x):
        act = gelu if self.shape.family == "gemma3" else silu
        return (act(x @ self._of(layer, "ffn_gate").T) * (x @ self._of(layer, "ffn_up").T)) @ self._of(layer, "ffn_down").T

    def _project(self, layer, name, x, heads):
        y = x @ self._of(layer, f"attn_{name}").T
        bias = self.weights.get(f"blk.{layer}.attn_{name}.bias")
        y = (y if bias is None else y + bias).reshape(len(x), heads, self.shape.head_size)
        norm = self.weights.get(f"blk.{layer}.attn_{name}_norm.weight")
        return y if norm is None else rms_norm(y, norm, self.shape.eps)

    def _attention(self, layer, x, positions):
        s = self.shape
        local = s.family == "gemma3" and (layer + 1) % GEMMA3_PATTERN != 0
        q = self._rotate(self._project(layer, "q", x, s.heads), positions, local)
        k = self._rotate(self._project(layer, "k", x, s.kv_heads), positions, local)
        v = self._project(layer, "v", x, s.kv_heads)
        if self.keys[layer] is not None:
            k, v = np.concatenate([self.keys[layer], k]), np.concatenate([self.values[layer], v])
        self.keys[layer], self.values[layer] = k, v
        distance = positions[:, None] - np.arange(len(k))[None, :]
        hidden = (distance < 0) | (distance >= s.window) if local and s.window else distance < 0
        out = np.empty((len(x), s.heads, s.head_size), np.float32)
        for head in range(s.heads):
            group = head // (s.heads // s.kv_heads)
            scores = q[:, head] @ k[:, group].T / np.float32(math.sqrt(s.head_size))
            scores[hidden] = -np.inf
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            out[:, head] = scores / scores.sum(axis=-1, keepdims=True) @ v[:, group]
        return out.reshape(len(x), -1) @ self._of(layer, "attn_output").T

    def _rotate(self, x, positions, local):
        """Rotary embedding; llama files hold pairs side by side, the other families in two halves."""
        s, half = self.shape, self.shape.head_size // 2
        base = GEMMA3_LOCAL_BASE if local else s.rope_base
        frequency = base ** (-np.arange(half, dtype=np.float64) / half) / (1.0 if local else s.rope_scale)
        factors = self.weights.get("rope_freqs.weight")
        if factors is not None:
            frequency = frequency / factors
        angle = positions[:, None, None] * frequency
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        out = np.empty_like(x)
        if s.family == "llama":
            a, b = x[..., 0::2], x[..., 1::2]
            out[..., 0::2], out[..., 1::2] = a * cos - b * sin, a * sin + b * cos
        else:
            a, b = x[..., :half], x[..., half:]
            out[..., :half], out[..., half:] = a * cos - b * sin, a * sin + b * cos
        return out


def read_shape(reader):
    def value(key, otherwise=None):
        field = reader.fields.get(key)
        if field is None and otherwise is None:
            raise KeyError(key)
        return otherwise if field is None else field.contents()
    family = value("general.architecture")
    heads, width = value(f"{family}.attention.head_count"), value(f"{family}.embedding_length")
    linear = value(f"{family}.rope.scaling.type", "none") == "linear"
    return Shape(family=family, layers=value(f"{family}.block_count"), width=width, heads=heads,
                 kv_heads=value(f"{family}.attention.head_count_kv", heads),
                 head_size=value(f"{family}.attention.key_length", width // heads),
                 eps=value(f"{family}.attention.layer_norm_rms_epsilon"),
                 rope_base=value(f"{family}.rope.freq_base", 1e6 if family == "gemma3" else 1e4),
                 rope_scale=value(f"{family}.rope.scaling.factor", 1.0) if linear else 1.0,
                 window=value(f"{family}.attention.sliding_window", 0), context=value(f"{family}.context_length"))


def dequantize(tensor):
    return np.ascontiguousarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False))
