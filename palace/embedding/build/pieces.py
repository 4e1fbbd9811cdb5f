"""The tokenizer of the default model as files: for `sentencepiece` and, the same, for `tokenizers` and fastembed."""

import base64
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceNormalizer

from palace.embedding.build.weights import SPECIALS, Shape
from palace.embedding.model import PIECES_FILE

_SCHEMA: Any = import_module("sentencepiece.sentencepiece_model_pb2")
"""Protocol buffers make their classes when they are imported; no type checker sees them."""

Pieces = Sequence[tuple[str, float]]
"""Text and score of each piece, in the order of their ids."""


def write(pieces: Pieces, shape: Shape, folder: Path) -> None:
    """Write every file beside the graph that fastembed, `tokenizers` or `sentencepiece` ask for."""
    rules = SentencePieceNormalizer(
        rule_name="nmt_nfkc", add_dummy_prefix=True, remove_extra_whitespaces=True, escape_whitespaces=True
    ).serialized_normalizer_spec()
    (folder / PIECES_FILE).write_bytes(_sentencepiece(pieces, rules))
    start, pad, end, unknown = SPECIALS
    named = {"bos_token": start, "pad_token": pad, "eos_token": end, "unk_token": unknown, "mask_token": pieces[-1][0]}
    config = {
        "model_type": "bert",
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.inner,
        "max_position_embeddings": shape.positions,
        "vocab_size": len(pieces),
        "pad_token_id": SPECIALS.index(pad),
    }
    files = {
        "tokenizer.json": _tokenizer(pieces, _SCHEMA.NormalizerSpec.FromString(rules).precompiled_charsmap),
        "tokenizer_config.json": {"model_max_length": shape.positions, **named},
        "special_tokens_map.json": named,
        "config.json": config,
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def _sentencepiece(pieces: Pieces, rules: bytes) -> bytes:
    kinds = _SCHEMA.ModelProto.SentencePiece
    special = dict.fromkeys((0, 1, 2, len(pieces) - 1), kinds.CONTROL) | {3: kinds.UNKNOWN}
    proto = _SCHEMA.ModelProto()
    for number, (text, score) in enumerate(pieces):
        proto.pieces.add(piece=text, score=score, type=special.get(number, kinds.NORMAL))
    trainer = proto.trainer_spec
    trainer.model_type = _SCHEMA.TrainerSpec.UNIGRAM
    trainer.bos_id, trainer.pad_id, trainer.eos_id, trainer.unk_id = range(len(SPECIALS))
    proto.normalizer_spec.ParseFromString(rules)
    return bytes(proto.SerializeToString())


def _tokenizer(pieces: Pieces, charsmap: bytes) -> dict[str, object]:
    """The `tokenizer.json` of XLM-RoBERTa for these pieces."""
    start, _, end, unknown = SPECIALS
    last = len(pieces) - 1
    added = [*enumerate(SPECIALS), (last, pieces[last][0])]
    words = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": text,
                "single_word": False,
                "lstrip": number == last,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for number, text in added
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            ],
        },
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, words]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [_special(start), _text("A"), _special(end)],
            "pair": [_special(start), _text("A"), _special(end), _special(end), _text("B"), _special(end)],
            "special_tokens": {
                text: {"id": text, "ids": [SPECIALS.index(text)], "tokens": [text]} for text in (start, end)
            },
        },
        "decoder": words,
        "model": {
            "type": "Unigram",
            "unk_id": SPECIALS.index(unknown),
            "vocab": [list(piece) for piece in pieces],
            "byte_fallback": False,
        },
    }


def _special(text: str) -> dict[str, object]:
    return {"SpecialToken": {"id": text, "type_id": 0}}


def _text(name: str) -> dict[str, object]:
    return {"Sequence": {"id": name, "type_id": 0}}
