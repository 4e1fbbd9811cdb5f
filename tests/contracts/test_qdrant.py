"""What is a Qdrant server's own: faults by a small server that answers as it does, collections and aliases by a real one."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dualwall.doctor import examine
from palace.errors import DualwallError, Exit, ModelMismatchError, StoreError, UnreachableError
from palace.settings import Qdrant, Settings, Stores
from palace.stores.catalogue import Catalogue
from palace.stores.database import Database
from palace.stores.qdrant import QdrantVectors
from palace.stores.qdrant_collection import LARGE, Collections
from palace.stores.qdrant_rebuild import open_vectors
from palace.stores.qdrant_server import Server
from tests.contracts.qdrant_stub import NAME, Answer, Stub, described, stub
from tests.contracts.stores import DIMENSIONS, ME, MODEL, chunk_id, point, qdrant_settings, unit

SECRET = "very-secret-key"  # noqa: S105 - it opens nothing


@pytest.fixture
def told() -> Iterator[Stub]:
    with stub() as server:
        yield server


@pytest.fixture
def store(told: Stub) -> Iterator[QdrantVectors]:
    settings = Qdrant(url=told.url)
    opened = QdrantVectors(settings, DIMENSIONS, model=MODEL, server=Server(settings, read=0.5, write=0.5))
    yield opened
    opened.close()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize("grpc", [False, True])
def test_a_server_that_is_down_at_the_start_is_named_with_what_to_do(*, grpc: bool) -> None:
    port = closed_port()
    settings = Qdrant(url=f"http://127.0.0.1:{port}", grpc_port=port if grpc else 0)
    with pytest.raises(UnreachableError, match=f"127.0.0.1:{port}") as error:
        QdrantVectors(settings, DIMENSIONS, model=MODEL, server=Server(settings, read=0.3))
    assert "dualwall doctor" in error.value.hint


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        settings = Qdrant(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(UnreachableError, match="does not answer"):
            Server(settings, read=0.3).version()


@pytest.mark.parametrize(
    "fault",
    [
        (503, "Service unavailable: shard 0 is unavailable"),
        (500, "Service internal error: 1 of 1 replicas failed"),
        (408, "Timeout: deadline exceeded"),
        (429, "Rate limiting exceeded: write rate limit"),
    ],
)
def test_a_write_is_repeated_while_its_failure_may_pass(told: Stub, store: QdrantVectors, fault: Answer) -> None:
    told.says(f"PUT /collections/{NAME}/points", fault, fault, (200, {"operation_id": 1, "status": "completed"}))
    store.upsert([point("a.md")])
    assert sum("PUT" in line for line in told.asked) == 3


def test_a_server_that_goes_away_in_the_middle_stops_the_run(store: QdrantVectors, told: Stub) -> None:
    store.upsert([point("a.md")])
    told.says(f"PUT /collections/{NAME}/points", (503, "Service unavailable: shutting down"))
    with pytest.raises(UnreachableError, match="shutting down"):
        store.upsert([point("b.md")])


def test_a_server_that_comes_back_in_time_is_not_noticed(told: Stub, store: QdrantVectors) -> None:
    busy = (503, "Service unavailable: starting")
    told.says(f"POST /collections/{NAME}/points/count", busy, (200, {"count": 3}))
    assert store.count() == 3


@pytest.mark.parametrize(
    "fault",
    [
        (500, "Service internal error: No space left on device: WAL buffer size exceeds available disk space"),
        (507, "Insufficient storage: disk quota reached"),
    ],
)
def test_a_full_disk_there_is_told_at_once(told: Stub, store: QdrantVectors, fault: Answer) -> None:
    told.says(f"PUT /collections/{NAME}/points", fault)
    with pytest.raises(StoreError, match="full disk"):
        store.upsert([point("a.md")])
    assert sum("PUT" in line for line in told.asked) == 1


def test_a_collection_that_was_deleted_is_told_with_the_command_that_makes_it(told: Stub, store: QdrantVectors) -> None:
    told.says(f"POST /collections/{NAME}/points/count", (404, f"Not found: Collection `{NAME}` doesn't exist!"))
    with pytest.raises(StoreError) as error:
        store.count()
    assert "dualwall ingest --rebuild" in error.value.hint


@pytest.mark.parametrize(("status", "said"), [(401, "Invalid API key or JWT"), (403, "Global access is required")])
def test_a_wrong_key_is_told_and_never_shown(told: Stub, tmp_path: Path, status: int, said: str) -> None:
    told.says("GET /", (status, said))
    file = tmp_path / "key"
    file.write_text(f"{SECRET}\n")
    with pytest.raises(UnreachableError, match=said) as error:
        QdrantVectors(Qdrant(url=told.url, api_key_file=file), DIMENSIONS, model=MODEL)
    assert str(file) in error.value.hint
    assert told.keys == {SECRET}
    assert SECRET not in f"{error.value} {error.value.__cause__!r} {error.value.__cause__.__cause__!r}"  # type: ignore[union-attr]
    with pytest.raises(UnreachableError, match=said) as without:
        QdrantVectors(Qdrant(url=told.url), DIMENSIONS, model=MODEL)
    assert "stores.qdrant.api_key_file" in without.value.hint


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines", b"\xff\xfe"])
def test_a_key_file_without_a_key_is_refused(tmp_path: Path, content: bytes) -> None:
    """An empty key is none at all to a server."""
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(UnreachableError, match="key"):
        Server(Qdrant(api_key_file=file))
    with pytest.raises(UnreachableError, match="absent"):
        Server(Qdrant(api_key_file=tmp_path / "absent"))


def test_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    with pytest.raises(UnreachableError, match="certificate"):
        Server(Qdrant(url="https://127.0.0.1:6333", ca_file=file))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (described(model="other"), ModelMismatchError),
        (described(dimensions=9), ModelMismatchError),
        (described(format=99), StoreError),
        (described() | {"config": described()["config"] | {"metadata": None}}, StoreError),
        (described() | {"config": described()["config"] | {"params": {"vectors": {}}}}, StoreError),
    ],
)
def test_a_collection_that_does_not_fit_is_refused(told: Stub, answer: object, error: type[DualwallError]) -> None:
    told.says(f"GET /collections/{NAME}-000001", (200, answer))
    with pytest.raises(error) as raised:
        QdrantVectors(Qdrant(url=told.url), DIMENSIONS, model=MODEL)
    assert raised.value.hint
    assert not any(line.startswith(("PUT", "DELETE", "PATCH")) for line in told.asked)


def test_a_server_that_counts_every_cubes_words_is_refused(told: Stub) -> None:
    told.says("GET /", (200, {"title": "qdrant - vector search engine", "version": "1.18.3"}))
    with pytest.raises(StoreError, match=r"1\.19"):
        QdrantVectors(Qdrant(url=told.url), DIMENSIONS, model=MODEL)


def test_an_answer_that_is_none_of_qdrants_is_not_quoted(told: Stub, store: QdrantVectors) -> None:
    told.says(f"POST /collections/{NAME}/points/count", (200, {"private": "a note's text"}))
    with pytest.raises(UnreachableError) as error:
        store.count()
    assert "private" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "risks"),
    [("http://127.0.0.1:6333", 0), ("http://localhost", 0), ("http://qdrant:6333", 1), ("https://q.example.org", 1), ("http://q.example.org", 2)],
)  # fmt: skip
def test_the_doctor_knows_what_is_risky(url: str, risks: int) -> None:
    assert len(Server(Qdrant(url=url)).warnings()) == risks


def test_the_doctor_asks_the_server(told: Stub, tmp_path: Path) -> None:
    told.says(f"GET /collections/{NAME}/exists", (200, {"exists": True}))
    stores = Stores(vectors="qdrant", qdrant=Qdrant(url=told.url))
    settings = Settings(data=tmp_path / "data", stores=stores)
    [check] = [check for check in examine(settings) if check.name == "qdrant"]
    assert (check.state, check.message) == ("ok", f"{told.url}, version 1.19.0, {NAME}")
    told.says(f"GET /collections/{NAME}/exists", (401, "Invalid API key or JWT"))
    [check] = [check for check in examine(settings) if check.name == "qdrant"]
    assert (check.state, check.exit) == ("fail", Exit.UNREACHABLE)
    assert "stores.qdrant.api_key_file" in check.mend


# -- against a real server ---------------------------------------------------------------------------------------------


@pytest.fixture
def real() -> Iterator[Qdrant]:
    url = os.environ.get("DUALWALL_TEST_QDRANT_URL")
    if not url:
        pytest.skip("DUALWALL_TEST_QDRANT_URL names no Qdrant server")
    settings = qdrant_settings(url)
    yield settings
    server = Server(settings)
    collections = Collections(server, settings, DIMENSIONS, MODEL)
    collections.delete()
    for number in range(1, 4):
        collections.drop(f"{settings.collection}-{number:06d}")
    server.close()


def test_two_that_open_at_once_make_one_collection(real: Qdrant) -> None:
    made: list[QdrantVectors] = []
    threads = [
        threading.Thread(target=lambda: made.append(QdrantVectors(real, DIMENSIONS, model=MODEL))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made[0].upsert([point("a.md", dense=unit(1))])
    assert [store.count() for store in made] == [1, 1, 1, 1]
    for store in made:
        store.close()


def test_a_rebuild_goes_on_beside_and_is_swapped_with_its_ledger(real: Qdrant, tmp_path: Path) -> None:
    with Database(tmp_path / "old.sqlite") as old, Database(tmp_path / "new.sqlite") as new:
        live = open_vectors(real, Catalogue(old), DIMENSIONS, MODEL)
        live.upsert([point("old.md", dense=unit(1))])
        for _ in range(2):  # the second goes on with the first one's, as after a kill
            beside = open_vectors(real, Catalogue(new), DIMENSIONS, "other", beside=True)
            beside.upsert([point("new.md", dense=unit(1))])
            assert (beside.count(), live.count()) == (1, 1)
            beside.close()
        with pytest.raises(ModelMismatchError):
            open_vectors(real, Catalogue(old), DIMENSIONS, "other")
        again = open_vectors(real, Catalogue(old), DIMENSIONS, MODEL)
        assert [s.id for s in again.dense(unit(1), ME.scope(), 5)] == [chunk_id("old.md")]
        swapped = open_vectors(real, Catalogue(new), DIMENSIONS, "other")
        assert [s.id for s in swapped.dense(unit(1), ME.scope(), 5)] == [chunk_id("new.md")]
        assert [s.id for s in live.dense(unit(1), ME.scope(), 5)] == [chunk_id("new.md")], "it asks the alias"
        for store in (live, again, swapped):
            store.close()


def test_a_rebuild_whose_ledger_is_gone_begins_anew(real: Qdrant, tmp_path: Path) -> None:
    QdrantVectors(real, DIMENSIONS, model=MODEL).close()
    for name in ("first", "second"):
        with Database(tmp_path / f"{name}.sqlite") as database:
            beside = open_vectors(real, Catalogue(database), DIMENSIONS, MODEL, beside=True)
            assert beside.count() == 0
            beside.upsert([point("a.md")])
            beside.close()


def test_a_collection_of_somebody_else_is_left_alone(real: Qdrant) -> None:
    taken = real.model_copy(update={"collection": f"{real.collection}-000001"})
    QdrantVectors(real, DIMENSIONS, model=MODEL).close()
    with pytest.raises(StoreError, match="not one of Dualwall's"):
        QdrantVectors(taken, DIMENSIONS, model=MODEL)


def test_points_that_vanish_while_they_get_their_vectors_are_left_out(real: Qdrant) -> None:
    store = QdrantVectors(real, DIMENSIONS, model=MODEL)
    store.upsert([point("a.md", n) for n in range(200)])
    half = threading.Thread(target=lambda: store.forget_chunks([chunk_id("a.md", n) for n in range(0, 200, 2)]))
    half.start()
    store.set_dense([(chunk_id("a.md", n), unit(1, n)) for n in range(200)])
    half.join()
    assert (store.count(), store.waiting()) == (100, 0)
    store.close()


def test_a_large_palace_gets_its_graph_once_and_answers_the_same(real: Qdrant) -> None:
    store = QdrantVectors(real, DIMENSIONS, model=MODEL)
    store.upsert([point("a.md", n, dense=unit(1, n)) for n in range(50)])
    before = store.dense(unit(1), ME.scope(), 10)
    server = Server(real)
    collections = Collections(server, real, DIMENSIONS, MODEL)
    assert not collections.grow(real.collection, LARGE)
    assert collections.grow(real.collection, LARGE + 1)
    assert not collections.grow(real.collection, LARGE + 1)
    assert store.dense(unit(1), ME.scope(), 10) == before
    store.close()
    server.close()
