"""How fast the default model embeds, against a bare onnxruntime session in the same run, and how near it is to float32.

    python -m bench.embedding [--seconds S] [--json]

Rates are texts a second at a text length in tokens, by one and by two workers over one session, and by two sessions.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnxruntime

from bench.embedding_reference import vector
from palace.embedding import dense, model, tokens
from palace.embedding.build.fetch import WEIGHTS_FILE
from palace.embedding.build.weights import Weights
from palace.settings import Embedding
from palace.stores.ports import Embedder

LENGTHS = (60, 200, 400)
WAYS = ("bare", "1 worker", "2 workers", "2 sessions")
Way: TypeAlias = Callable[[Sequence[str]], Iterable[object]]
_ENGLISH = (
    "The kitchen garden gives beans in July, and the old pump still draws water when the tank runs low. Nina wrote down "
    "which beds were dug, what the soil looked like after rain, and why the second row of lettuce failed this year. "
)
_CHINESE = "机器人学会了在狭窄的走廊里转弯，日志里写着每一次碰撞的时间和原因，下周要换掉左边的传感器。"
_COLD = (
    "import time; t = time.perf_counter()\n"
    "from palace.embedding import dense\n"
    "from palace.settings import Embedding\n"
    "dense.load(Embedding()).query('where is the pump?')\n"
    "print(time.perf_counter() - t)\n"
)


def text_of(length: int, number: int) -> str:
    """A text of about that many tokens with its prefix and ends; English and Chinese in turn, each another one."""
    pieces = tokens.load_pieces(model.folder())
    ids = pieces.encode(f"{number} " + (_CHINESE if number % 4 == 3 else _ENGLISH) * 40)
    return str(pieces.decode(ids[: length - 5]))


def race(ways: dict[str, Way], texts: Sequence[str], seconds: float) -> dict[str, dict[str, float]]:
    """Texts a second, and a second of processor time: rounds in turn until the time is up, the best of each way."""
    best = {name: {"texts": 0.0, "cpu": 0.0} for name in ways}
    until = time.perf_counter() + seconds
    while not best[WAYS[-1]]["texts"] or time.perf_counter() < until:
        for name, way in ways.items():
            begun, begun_cpu = time.perf_counter(), time.process_time()
            for _ in way(texts):
                pass
            spent = {"texts": time.perf_counter() - begun, "cpu": time.process_time() - begun_cpu}
            best[name] = {kind: max(best[name][kind], len(texts) / spent[kind]) for kind in spent}
    return best


def bare_session() -> Way:
    """The same graph with one thread and nothing around it: token ids are made before the clock starts."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model.folder() / "model.onnx"), options, ["CPUExecutionProvider"])
    known: dict[str, np.ndarray[Any, Any]] = {}
    pieces = tokens.load_pieces(model.folder())

    def run(texts: Sequence[str]) -> Iterable[object]:
        for text in texts:
            ids = known.setdefault(text, np.array([[0, *pieces.encode(f"passage: {text}"), 2]], np.int64))
            yield session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})

    return run


def two_sessions(one: Embedder, other: Embedder, pool: ThreadPoolExecutor) -> Way:
    """Every other text to each of two embedders that share nothing."""

    def run(texts: Sequence[str]) -> list[object]:
        halves = [
            pool.submit(lambda e, t: list(e.passages(t)), e, t) for e, t in ((one, texts[::2]), (other, texts[1::2]))
        ]
        return [half.result() for half in halves]

    return run


def speeds(seconds: float) -> list[dict[str, Any]]:
    """One row a text length."""
    one, same, shared = (dense.load(Embedding(workers=workers)) for workers in (1, 1, 2))
    rows = []
    with ThreadPoolExecutor(2) as pool:
        ways: dict[str, Way] = {
            "bare": bare_session(),
            "1 worker": one.passages,
            "2 workers": shared.passages,
            "2 sessions": two_sessions(one, same, pool),
        }
        for length in LENGTHS:
            texts = [text_of(length, number) for number in range(max(8, 1200 // length // 4 * 4))]
            rows.append({"tokens": length, **race(ways, texts, seconds)})
    for embedder in (one, same, shared):
        embedder.close()
    return rows


def question_times() -> list[float]:
    """Milliseconds of each of a hundred questions, ascending."""
    embedder = dense.load(Embedding())
    times = []
    for number in range(110):
        begun = time.perf_counter()
        embedder.query(f"why did row {number} of the lettuce fail?")
        times.append(1000 * (time.perf_counter() - begun))
    embedder.close()
    return sorted(times[10:])


def nearness() -> list[float]:
    """Cosines of int8 to float32 for twelve texts of mixed length, ascending."""
    embedder = dense.load(Embedding())
    weights = Weights(model.folder().parent / WEIGHTS_FILE)
    pieces = tokens.load_pieces(model.folder())
    texts = [text_of(length, number) for number, length in enumerate((12, 30, 60, 90, 12, 30, 60, 90, 16, 40, 64, 120))]
    wanted = [vector(weights, [0, *pieces.encode(f"passage: {text}"), 2]) for text in texts]
    found = [float(a @ b) for a, b in zip(embedder.passages(texts), wanted, strict=True)]
    embedder.close()
    return sorted(found)


def cold_start() -> float:
    """Seconds of a new process from its first import to its first vector; the best of three."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    command = [sys.executable, "-c", _COLD]
    return min(float(subprocess.check_output(command, env=environment, text=True)) for _ in range(3))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.embedding", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="time for each text length")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    asked = parser.parse_args(arguments)
    model.ensure(say=lambda line: print(line, file=sys.stderr))
    cold, rows = cold_start(), speeds(asked.seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (20 if sys.platform == "darwin" else 10))
    times, cosines = question_times(), nearness()
    result = {
        "rates": rows,
        "cold_start_seconds": cold,
        "query_ms": {"p50": statistics.median(times), "p95": times[94]},
        "cosine_to_float32": {"min": cosines[0], "mean": statistics.fmean(cosines)},
        "peak_mb": peak,
    }
    print(json.dumps(result) if asked.json else table(result))
    return 0


def table(result: dict[str, Any]) -> str:
    """The figures as text."""
    lines = [
        f"{'':8}{'texts a second':>52}{'texts a second of processor time':>52}",
        "  tokens" + "".join(f"{name:>13}" for name in (*WAYS, *WAYS)),
    ]
    for row in result["rates"]:
        figures = [row[way][kind] for kind in ("texts", "cpu") for way in WAYS]
        lines.append(f"{row['tokens']:>8}" + "".join(f"{figure:>13.1f}" for figure in figures))
    query, cosine = result["query_ms"], result["cosine_to_float32"]
    lines += [
        f"query p50 {query['p50']:.1f} ms, p95 {query['p95']:.1f} ms; cold start {result['cold_start_seconds']:.2f} s",
        f"cosine to float32: mean {cosine['mean']:.4f}, least {cosine['min']:.4f}; peak memory {result['peak_mb']:.0f} MB",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
