"""From a question to an answer with its receipt, inside both walls."""

import json
from dataclasses import replace

import pytest

from palace.errors import UsageError
from palace.search.floor import Floor
from palace.search.receipt import answer_json, rooms_json
from palace.search.rooms import RoomsQuery
from palace.settings import Neo4j, Search
from palace.stores.neo4j import Neo4jGraph
from palace.vocabulary import Answer, NoteId, Room
from palace.walls import Reader
from tests.flows.searching import CAT, ME, HashedWords, Leaf, SmallPalace, Unreachable

TOMATO = Leaf("Tomatoes", ("Water tomatoes in the morning.", "Prune the side shoots of tomatoes."), ("Home/Garden",))
ROSES = Leaf("Roses", ("Prune roses in March, before they leaf out.",), ("Work/Garden",))
PLAN = Leaf(
    "AI-Fortune", ("The plan of the fortune app: launch in May.",), ("projects/AI-Fortune",), aliases=("命理应用",)
)
MEMO = Leaf("Memo", ("Launch notes and prune the backlog.",), ("work/ideas", "projects/AI-Fortune"))
SECRET = Leaf("Soul", ("The launch code of the cat is meow.",), ("dev-cat/system_config",), cube="dev-cat")
OLD = Leaf("Old plan", ("Launch in April.",), ("projects/AI-Fortune",), status="superseded")
INDEX = Leaf("Garden", ("# Garden\n\nWhat grows at home. And more.",), ("Home/Garden",))
LEAVES = (TOMATO, ROSES, PLAN, MEMO, SECRET, OLD, INDEX)


def titles(answer: Answer) -> list[str]:
    return [h.title for h in answer.hits]


def test_an_answer_carries_all_that_is_needed_to_cite_it() -> None:
    answer = SmallPalace(LEAVES).searcher().search("prune roses", ME)
    best = answer.hits[0]
    assert answer.status == "hit"
    assert best.ref == ROSES.ref.id
    assert (best.title, best.path, best.cube, best.vault) == ("Roses", "Roses.md", "global", "v")
    assert (best.wings, best.rooms) == (("work",), ("garden",))
    assert (best.heading, best.lines) == ("Part > 0", (1, 2))
    assert set(best.legs) >= {"bm25", "dense"}
    assert all(0 <= h.score <= 1 for h in answer.hits)


def test_the_receipt_says_what_was_searched_and_how() -> None:
    receipt = SmallPalace(LEAVES).searcher().search("prune", ME, rooms=["garden"]).receipt
    assert receipt.time == "2026-05-01T12:00:00.000Z"
    assert (receipt.reader, receipt.cubes, receipt.generation) == ("me", ("global",), 12)
    assert receipt.asked == {"rooms": ("garden",), "wings": ()}
    assert receipt.searched == {"rooms": ("home/garden", "work/garden"), "wings": ("home", "work")}
    assert receipt.model == "hashed-words"
    assert receipt.dense_share == 1.0
    assert set(receipt.legs) == {"lock", "bm25", "dense"}
    assert not receipt.fallback


@pytest.mark.parametrize("query", ["launch", "meow", "soul", "Soul", "the launch code of the cat is meow"])
def test_no_question_brings_another_cube(query: str) -> None:
    searcher = SmallPalace(LEAVES).searcher()
    for rooms in ([], ["system_config"], ["dev-cat/system_config"], ["garden"]):
        answer = searcher.search(query, ME, rooms=rooms, limit=100)
        shown = json.dumps(answer_json(answer))
        assert "Soul" not in titles(answer)
        assert "meow" not in shown.replace(query, "")
        assert SECRET.ref.id not in shown
    assert "Soul" in titles(searcher.search(query, CAT))


def test_a_room_of_another_cube_is_as_unknown_as_one_that_is_not() -> None:
    searcher = SmallPalace(LEAVES).searcher()
    other = answer_json(searcher.search("launch", ME, rooms=["system_config"]))
    nowhere = answer_json(searcher.search("launch", ME, rooms=["system_confix"]))
    assert other["fallback"] is nowhere["fallback"] is True
    assert json.dumps(other).replace("system_config", "X") == json.dumps(nowhere).replace("system_confix", "X")


def test_an_unknown_room_is_answered_from_the_whole_scope_with_the_nearest_rooms() -> None:
    answer = SmallPalace(LEAVES).searcher().search("prune roses", ME, rooms=["gardn"])
    assert answer.fallback
    assert answer.receipt.fallback
    assert answer.reason is not None
    assert "gardn" in answer.reason
    assert titles(answer)[0] == "Roses"
    assert any("home/garden" in h and "work/garden" in h for h in answer.hints)
    assert answer.receipt.searched == {"rooms": (), "wings": ()}
    assert answer.elsewhere == ()


def test_a_graph_that_is_down_narrows_nothing_and_the_receipt_says_so() -> None:
    away = Neo4jGraph(Neo4j(url="bolt://127.0.0.1:9"), patience=0.2)
    searcher = replace(SmallPalace([Leaf("Bread", ("Flour and water.",))]).searcher(), graph=away)
    answer = searcher.search("flour", ME, rooms=["ideas"])
    assert [h.title for h in answer.hits] == ["Bread"]
    assert answer.receipt.fallback
    assert "Rooms cannot be looked up" in (answer.reason or "")
    assert not searcher.search("flour", ME).fallback
    away.close()


def test_a_known_room_beside_an_unknown_one_narrows_and_says_so() -> None:
    answer = SmallPalace(LEAVES).searcher().search("prune", ME, rooms=["gardn", "AI-Fortune"])
    assert not answer.fallback
    assert answer.receipt.searched["rooms"] == ("projects/ai-fortune",)
    assert any("gardn" in h for h in answer.hints)


def test_stronger_notes_outside_the_named_room_are_told_of() -> None:
    searcher = SmallPalace(LEAVES).searcher()
    wrong = searcher.search("prune roses in march", ME, rooms=["ai-fortune"])
    assert set(titles(wrong)) <= {"AI-Fortune", "Memo"}
    assert wrong.elsewhere[0].title == "Roses"
    assert wrong.elsewhere[0].rooms == ("garden",)
    assert wrong.elsewhere[0].score > wrong.hits[0].score
    right = searcher.search("prune roses in march", ME, rooms=["work/garden"])
    assert titles(right) == ["Roses"]
    assert right.elsewhere == ()


def test_a_wing_narrows_too() -> None:
    answer = SmallPalace(LEAVES).searcher().search("prune", ME, wings=["HOME"])
    assert set(titles(answer)) <= {"Tomatoes", "Garden"}
    assert answer.receipt.searched == {"rooms": (), "wings": ("home",)}


def test_a_note_of_two_rooms_does_not_answer_for_a_third() -> None:
    both = Leaf("Both", ("prune",), ("work/ideas", "home/garden"))
    other = Leaf("Other", ("nothing of it",), ("work/garden",))
    answer = SmallPalace((both, other)).searcher().search("prune", ME, rooms=["work/garden"])
    assert "Both" not in titles(answer)


def test_a_name_goes_first_however_weak_its_text_is() -> None:
    searcher = SmallPalace(LEAVES).searcher()
    for query in ("ai-fortune", "命理应用", "“AI-Fortune”?"):
        assert titles(searcher.search(query, ME))[0] == "AI-Fortune"
    lexical = SmallPalace(LEAVES, legs=frozenset({"lock"})).searcher().search("memo", ME)
    assert titles(lexical) == ["Memo"]
    assert lexical.receipt.legs == {"lock": 1, "bm25": 0, "dense": 0}


def test_a_note_gives_two_chunks_at_most() -> None:
    long = Leaf("Long", tuple(f"prune tree number {i}" for i in range(20)))
    searcher = SmallPalace((*LEAVES, long)).searcher()
    shown = titles(searcher.search("prune tree", ME, limit=100))
    assert shown.count("Long") == 2
    assert len(searcher.search("prune tree", ME, limit=1).hits) == 1


def test_hidden_statuses_come_only_when_asked_for() -> None:
    searcher = SmallPalace(LEAVES).searcher()
    assert "Old plan" not in titles(searcher.search("launch in april", ME))
    asked = searcher.search("launch in april", ME, statuses=["superseded"])
    assert titles(asked)[0] == "Old plan"
    assert asked.hits[0].status == "superseded"


@pytest.mark.parametrize(
    ("query", "limit", "status"),
    [("", 5, "active"), (" \u200b\n\t", 5, "active"), ("a", 0, "active"), ("a", 101, "active")],
)
def test_an_empty_question_and_odd_limits_are_refused(query: str, limit: int, status: str) -> None:
    with pytest.raises(UsageError):
        SmallPalace(LEAVES).searcher().search(query, ME, limit=limit, statuses=[status])


def test_a_status_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="no status"):
        SmallPalace(LEAVES).searcher().search("a", ME, statuses=["wrong"])


@pytest.mark.parametrize("query", ["\ud800 prune", "prune\x00roses", "prune " * 5000, "修剪玫瑰" * 2000, "???", "👩‍🌾"])
def test_odd_questions_are_answered(query: str) -> None:
    answer = SmallPalace(LEAVES).searcher().search(query, ME)
    assert answer.status in {"hit", "miss"}
    if len(query) > 2000:
        assert any("first" in h and "characters" in h for h in answer.hints)


@pytest.mark.parametrize(
    ("embedder", "model"), [(None, ""), (Unreachable(), "hashed-words"), (HashedWords(), "another-model")]
)
def test_without_its_model_a_search_goes_on_by_words_and_says_so(embedder: HashedWords | None, model: str) -> None:
    answer = SmallPalace(LEAVES, embedder=embedder, model=model).searcher().search("prune roses", ME)
    assert titles(answer)[0] == "Roses"
    assert answer.receipt.legs["dense"] == 0
    assert answer.receipt.legs["bm25"] > 0
    assert any("by words alone" in h for h in answer.hints)
    assert answer_json(answer)["hits"][0]["legs"]["dense"] is None


def test_chunks_that_wait_for_their_vector_answer_by_words() -> None:
    waiting = Leaf("Waiting", ("Zebra crossings of the town.",), embedded=False)
    answer = SmallPalace((*LEAVES, waiting)).searcher().search("zebra crossings", ME)
    assert titles(answer)[0] == "Waiting"
    assert 0 < answer.receipt.dense_share < 1


HIGH = Floor(cos_mean=0.9, cos_std=0.01, cov_mean=0.9, cov_std=0.1, floor=-1.0, n=100, model="hashed-words")
LOW = Floor(cos_mean=0.0, cos_std=1.0, cov_mean=0.0, cov_std=1.0, floor=-1.0, n=100, model="hashed-words")


def test_under_the_floor_there_is_no_answer_but_hints() -> None:
    searcher = SmallPalace(LEAVES, floor=HIGH).searcher()
    answer = searcher.search("quantum chromodynamics and roses", ME)
    assert (answer.status, answer.hits) == ("miss", ())
    assert answer.receipt.floors["strength"] < answer.receipt.floors["floor"] == -1.0
    assert any("no answer" in h and "Roses" in h for h in answer.hints)
    assert searcher.search("roses", ME).status == "hit", "a name is never a miss"


def test_over_the_floor_there_is_an_answer() -> None:
    answer = SmallPalace(LEAVES, floor=LOW).searcher().search("prune roses", ME)
    assert answer.status == "hit"
    assert answer.receipt.floors["strength"] >= answer.receipt.floors["floor"]


@pytest.mark.parametrize(
    "palace",
    [
        SmallPalace(LEAVES, floor=Floor(0.9, 0.01, 0.9, 0.1, -1.0, 100, "another-model")),
        SmallPalace((*LEAVES, Leaf("Waiting", ("zebra",) * 9, embedded=False)), floor=HIGH),
        SmallPalace(LEAVES, floor=HIGH, embedder=None),
    ],
)
def test_a_floor_of_another_model_or_of_too_few_vectors_does_not_count(palace: SmallPalace) -> None:
    answer = palace.searcher().search("chromodynamics and roses", ME)
    assert answer.status == "hit"
    assert answer.receipt.floors == {}


def test_nothing_at_all_is_a_miss_with_a_hint() -> None:
    answer = SmallPalace(()).searcher().search("anything", ME)
    assert (answer.status, answer.hits) == ("miss", ())
    assert answer.hints


def test_an_answer_is_json_of_the_contract() -> None:
    data = answer_json(SmallPalace(LEAVES).searcher().search("prune roses", ME, rooms=["ai-fortune"]))
    assert list(data) == ["status", "fallback", "reason", "hits", "elsewhere", "hints", "receipt"]
    assert list(data["hits"][0]) == [
        *("ref", "title", "vault", "path", "cube", "wings", "rooms", "heading", "lines", "text", "score", "legs"),
        *("note_sha256", "chunk_sha256", "status", "trust", "stale"),
    ]
    assert list(data["elsewhere"][0]) == ["ref", "title", "rooms", "score"]
    assert list(data["receipt"]) == [
        *("time", "reader", "cubes", "asked", "searched", "fallback", "legs", "floors", "generation", "model"),
        "dense_share",
    ]
    assert json.loads(json.dumps(data)) == data


def test_explaining_adds_each_legs_share() -> None:
    searcher = SmallPalace(LEAVES).searcher()
    assert set(searcher.search("prune before March", ME).hits[0].legs) == {"bm25", "dense"}
    assert set(searcher.search("prune before March", ME, explain=True).hits[0].legs) == {
        *("bm25", "dense", "bm25_share", "dense_share"),
    }


def test_rrf_is_a_setting() -> None:
    answer = SmallPalace(LEAVES, settings=Search(fusion="rrf")).searcher().search("prune roses", ME)
    assert titles(answer)[0] == "Roses"
    assert all(0 <= h.score <= 1 for h in answer.hits)


def test_rooms_are_listed_with_counts_and_what_they_are_about() -> None:
    page = SmallPalace(LEAVES).searcher().rooms(ME, RoomsQuery())
    listed = {r.address.place: (r.notes, r.description) for r in page.rooms}
    assert listed["home/garden"] == (2, "What grows at home.")
    assert listed["work/garden"] == (1, None)
    assert "dev-cat/system_config" not in listed
    assert page.next is None


def test_rooms_come_in_the_order_in_which_they_suit_a_query() -> None:
    searcher = SmallPalace(LEAVES).searcher()
    assert searcher.rooms(ME, RoomsQuery("ai fortune")).rooms[0].address.place == "projects/ai-fortune"
    by_content = searcher.rooms(ME, RoomsQuery("water the tomatoes")).rooms
    assert by_content[0].address.place == "home/garden"
    assert by_content[0].score is not None
    assert by_content[0].score > 0


def test_pages_of_rooms_give_each_room_once() -> None:
    searcher = SmallPalace(LEAVES).searcher()
    for query in (None, "garden"):
        whole = searcher.rooms(ME, RoomsQuery(query)).rooms
        seen: list[Room] = []
        cursor: str | None = None
        for _ in range(10):
            page = searcher.rooms(ME, RoomsQuery(query, cursor=cursor, limit=2))
            seen += page.rooms
            cursor = page.next
            if cursor is None:
                break
        assert tuple(seen) == whole
    with pytest.raises(UsageError):
        searcher.rooms(ME, RoomsQuery(cursor="nonsense"))
    with pytest.raises(UsageError):
        searcher.rooms(ME, RoomsQuery(limit=0))


def test_rooms_of_one_wing() -> None:
    page = SmallPalace(LEAVES).searcher().rooms(ME, RoomsQuery(wing="HOME"))
    assert [r.address.place for r in page.rooms] == ["home/garden"]
    assert rooms_json(page.rooms, page.next)["rooms"][0]["label"] == "Garden"


def test_a_reader_without_notes_gets_a_miss() -> None:
    nobody = Reader("nobody", frozenset({"elsewhere"}))
    searcher = SmallPalace(LEAVES).searcher()
    assert searcher.search("prune", nobody).status == "miss"
    assert searcher.rooms(nobody, RoomsQuery()).rooms == ()
    assert NoteId(PLAN.ref.id) not in json.dumps(answer_json(searcher.search("ai-fortune", nobody)))


def garden() -> list[Leaf]:
    beds, tasks = (
        ("leeks", "tomatoes", "roses", "beans", "squash", "thyme"),
        ("water", "prune", "sow", "mulch", "harvest"),
    )
    return [
        Leaf(
            f"{task} {bed}",
            (f"In spring we {task} the {bed} beds by the south wall.", f"Notes on {bed}: {task} early."),
        )
        for bed in beds
        for task in tasks
    ]


def test_a_palace_draws_its_floor_and_tells_strange_questions() -> None:
    palace = SmallPalace(garden())
    floor = palace.searcher().calibrate(ME)
    assert floor is not None
    assert (floor.model, floor.n > 30) == ("hashed-words", True)
    searcher = SmallPalace(garden(), floor=floor).searcher()
    assert searcher.search("when do we water the roses in spring", ME).status == "hit"
    strange = searcher.search("quarterly revenue forecast spreadsheet macros", ME)
    assert strange.status == "miss"
    assert strange.receipt.floors["strength"] < strange.receipt.floors["floor"]


def test_without_a_model_vectors_or_notes_there_is_no_floor_to_draw() -> None:
    waiting = [Leaf(leaf.title, leaf.texts, embedded=False) for leaf in garden()]
    assert SmallPalace(garden(), embedder=None).searcher().calibrate(ME) is None
    assert SmallPalace(waiting).searcher().calibrate(ME) is None
    assert SmallPalace(LEAVES).searcher().calibrate(ME) is None
