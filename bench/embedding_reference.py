"""The default model's forward pass in float32 numpy, from its weights file: what the int8 graph is measured by."""

import math
from collections.abc import Sequence

import numpy as np

from palace.embedding.build.weights import Floats, Weights


def last_hidden_state(weights: Weights, ids: Sequence[int]) -> Floats:
    """The network's output for one text's token ids, specials included. Shape (tokens, hidden)."""
    hidden = weights.shape.hidden
    state = weights.rows("emb.word", hidden, np.asarray(ids, np.int64))
    state = state + weights.vector("emb.pos").reshape(-1, hidden)[: len(ids)] + weights.vector("emb.type")[:hidden]
    state = _normalised(weights, state, "emb.ln")
    for number in range(weights.shape.layers):
        name = f"l{number}"
        state = _normalised(weights, state + _attended(weights, state, name), f"{name}.aln")
        inner = _gelu(_linear(weights, state, f"{name}.fi"))
        state = _normalised(weights, state + _linear(weights, inner, f"{name}.fo"), f"{name}.oln")
    return state


def vector(weights: Weights, ids: Sequence[int]) -> Floats:
    """Mean over the tokens, unit length. Shape (hidden,)."""
    mean = last_hidden_state(weights, ids).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), np.float32)


def _attended(weights: Weights, state: Floats, name: str) -> Floats:
    heads, size = weights.shape.heads, weights.shape.hidden // weights.shape.heads
    query, key, value = (
        _linear(weights, state, f"{name}.{part}").reshape(-1, heads, size).transpose(1, 0, 2) for part in "qkv"
    )
    scores = query @ key.transpose(0, 2, 1) / math.sqrt(size)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = shares / shares.sum(axis=-1, keepdims=True)
    return _linear(weights, (shares @ value).transpose(1, 0, 2).reshape(state.shape), f"{name}.ao")


def _linear(weights: Weights, value: Floats, name: str) -> Floats:
    return value @ weights.rows(f"{name}.w", value.shape[-1]).T + weights.vector(f"{name}.b")


def _normalised(weights: Weights, value: Floats, name: str) -> Floats:
    centred = value - value.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + weights.shape.epsilon)
    return np.asarray(centred / spread * weights.vector(f"{name}.w") + weights.vector(f"{name}.b"), np.float32)


def _gelu(value: Floats) -> Floats:
    error = np.vectorize(math.erf, otypes=[np.float32])(value / math.sqrt(2))
    return np.asarray(value * (1 + error) / 2, np.float32)
