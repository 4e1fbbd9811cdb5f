"""The network as an ONNX graph: token ids and their mask to the last hidden state, in int8.

Weights are symmetric int8, one scale an output, of 7 bits: processors without VNNI add two products in 16 bits, which
8 bits overflow. Activations are quantised at run time. Four-bit weights (`MatMulNBits`) were as slow as float32 here.
Tables stand in a file of their own that the runtime maps into memory, so that they cost no copy.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, external_data_helper, helper, numpy_helper

from palace.embedding.build.weights import Floats, Ids, Weights

MODEL_FILE = "model.onnx"
DATA_FILE = "model.onnx.data"

_CONTRIB = "com.microsoft"
_PAGE = 4096
_WEIGHT_LIMIT = 63
_TABLE_LIMIT = 127
_BLOCK = 8192


class _Graph:
    """Nodes and constants under construction; constants of a page or more go to the data file."""

    def __init__(self, data: BinaryIO) -> None:
        self._data = data
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        tensor = numpy_helper.from_array(np.ascontiguousarray(value), name)
        if value.nbytes >= _PAGE:
            self._data.write(bytes(-self._data.tell() % _PAGE))
            offset, length = self._data.tell(), len(tensor.raw_data)
            self._data.write(tensor.raw_data)
            external_data_helper.set_external_data(tensor, DATA_FILE, offset, length)
            tensor.ClearField("raw_data")
        self.constants.append(tensor)
        return name

    def ops(self, kind: str, inputs: Sequence[str], count: int, domain: str = "", **attributes: float) -> list[str]:
        """Add a node; the names of its outputs."""
        outputs = [f"{kind}_{len(self.nodes)}_{number}" for number in range(count)]
        node = helper.make_node(kind, inputs, outputs, domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(node)
        return outputs

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: float) -> str:
        """Add a node of one output; its name."""
        return self.ops(kind, inputs, 1, domain, **attributes)[0]


class _Network:
    """Writes the layers of one weights file into a graph. Matrices are shape (outputs, inputs)."""

    def __init__(self, weights: Weights, graph: _Graph) -> None:
        self._weights = weights
        self._shape = weights.shape
        self._graph = graph

    def embed(self, kept: Ids) -> str:
        """Word, position and type embeddings, normalised."""
        graph, shape, weights = self._graph, self._shape, self._weights
        table, scales = _quantised_rows(weights, kept)
        codes = graph.op("Cast", graph.op("Gather", graph.constant("word", table), "input_ids"), to=TensorProto.FLOAT)
        word = graph.op("Mul", codes, graph.op("Gather", graph.constant("word.scale", scales), "input_ids"))
        places = weights.vector("emb.pos").reshape(-1, shape.hidden) + weights.vector("emb.type")[: shape.hidden]
        length = graph.op("Shape", "input_ids", start=1, end=2)
        start = graph.constant("zero", np.zeros(1, np.int64))
        position = graph.op("Slice", graph.constant("position", places), start, length)
        return self._normalise(graph.op("Add", word, position), "emb.ln")

    def layer(self, state: str, number: int, mask: str) -> str:
        """One layer of attention and feed-forward."""
        graph, name = self._graph, f"l{number}"
        packed = graph.ops(
            "Split", [self._linear(state, [f"{name}.{part}" for part in "qkv"])], 3, axis=-1, num_outputs=3
        )
        context = graph.op("MultiHeadAttention", *packed, "", mask, domain=_CONTRIB, num_heads=self._shape.heads)
        attended = self._linear(context, [f"{name}.ao"])
        state = self._normalise(graph.op("Add", state, attended), f"{name}.aln")
        inner = graph.op("Gelu", self._linear(state, [f"{name}.fi"]))
        return self._normalise(graph.op("Add", state, self._linear(inner, [f"{name}.fo"])), f"{name}.oln")

    def _linear(self, value: str, names: Sequence[str]) -> str:
        """One product with the stacked matrices of those names, and their biases."""
        columns = self._shape.inner if names[0].endswith("fo") else self._shape.hidden
        matrix = np.concatenate([self._weights.rows(f"{name}.w", columns) for name in names])
        bias = np.concatenate([self._weights.vector(f"{name}.b") for name in names])
        codes, scales = _quantised(matrix, _WEIGHT_LIMIT)
        inputs = [
            self._graph.constant(f"{names[0]}.w", codes.T),
            self._graph.constant(f"{names[0]}.scale", scales[:, 0]),
            self._graph.constant(f"{names[0]}.zero", np.zeros(len(codes), np.int8)),
            self._graph.constant(f"{names[0]}.b", bias),
        ]
        return self._graph.op("DynamicQuantizeMatMul", value, *inputs, domain=_CONTRIB)

    def _normalise(self, value: str, name: str) -> str:
        parts = [self._graph.constant(f"{name}.{part}", self._weights.vector(f"{name}.{part}")) for part in "wb"]
        return self._graph.op("LayerNormalization", value, *parts, axis=-1, epsilon=self._shape.epsilon)


def write(weights: Weights, kept: Ids, folder: Path) -> None:
    """Write `model.onnx` and its data file for the pieces kept; row n of the table is the n-th of them."""
    with (folder / DATA_FILE).open("wb") as data:
        graph = _Graph(data)
        network = _Network(weights, graph)
        mask = graph.op("Cast", "attention_mask", to=TensorProto.INT32)
        state = network.embed(kept)
        for number in range(weights.shape.layers):
            state = network.layer(state, number, mask)
        graph.nodes.append(helper.make_node("Identity", [state], ["last_hidden_state"]))
    (folder / MODEL_FILE).write_bytes(_model(graph, weights.shape.hidden).SerializeToString())


def _model(graph: _Graph, hidden: int) -> ModelProto:
    size = ["batch", "sequence"]
    body = helper.make_graph(
        graph.nodes,
        "multilingual-e5-small",
        [helper.make_tensor_value_info(name, TensorProto.INT64, size) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*size, hidden])],
        graph.constants,
    )
    versions = [helper.make_opsetid("", 20), helper.make_opsetid(_CONTRIB, 1)]
    return helper.make_model(body, opset_imports=versions, ir_version=10, producer_name="dualwall")


def _quantised(matrix: Floats, limit: int) -> tuple[npt.NDArray[np.int8], Floats]:
    """Codes of a row-wise quantisation, and the scale of each row, shape (rows, 1)."""
    scales = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.finfo(np.float32).tiny) / limit
    return np.rint(matrix / scales).astype(np.int8), scales.astype(np.float32)


def _quantised_rows(weights: Weights, kept: Ids) -> tuple[npt.NDArray[np.int8], Floats]:
    """The word table of the pieces kept, a block at a time: all of it in float32 would take 400 MB."""
    hidden = weights.shape.hidden
    codes = np.empty((len(kept), hidden), np.int8)
    scales = np.empty((len(kept), 1), np.float32)
    for low in range(0, len(kept), _BLOCK):
        block = slice(low, low + _BLOCK)
        codes[block], scales[block] = _quantised(weights.rows("emb.word", hidden, kept[block]), _TABLE_LIMIT)
    return codes, scales
