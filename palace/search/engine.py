"""A search from question to answer with receipt. No search runs without a reader's scope."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TypedDict, Unpack

from palace import settings
from palace.errors import UsageError
from palace.search import receipt
from palace.search.floor import Floor, Known, Signs, calibrate, known_questions
from palace.search.fuse import Fused, Ranking, diverse, fuse, shares
from palace.search.legs import LEGS, Asker, Coverage, Question, Runner, State
from palace.search.lock import EXACT, Names, locked
from palace.search.rooms import Describer, RoomsPage, RoomsQuery, list_rooms
from palace.search.where import Finder, Where
from palace.stores.payload import Payload
from palace.stores.ports import Embedder, Graph, Scored, SparseEmbedder, VectorStore
from palace.vocabulary import HIDDEN_STATUSES, Answer, ChunkId, Elsewhere, Hit, Receipt, RoomAddress, Status
from palace.walls import Reader, Scope

MOST_HITS = 100
MOST_ELSEWHERE = 3
_SURE_SHARE = 0.9
"""Of dense vectors: with fewer, the best cosine tells nothing and no floor applies."""
_HOLDING = 30
"""Best chunks of the lexical leg that tell what rooms hold."""

Legs = Mapping[str, Sequence[Scored]]


class Options(TypedDict, total=False):
    """What a search may be told. `limit`: 1 to 100 hits; `statuses`: hidden ones that are asked for.

    `elsewhere` False: look into the named rooms alone, which takes half the time.
    """

    rooms: Sequence[str]
    wings: Sequence[str]
    limit: int | None
    explain: bool
    statuses: Iterable[str]
    elsewhere: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """Candidates of the scope and of what lies around it, each best first, and which of the two are under the floor."""

    legs: Legs
    ranking: Ranking
    inside: Sequence[Fused]
    outside: Sequence[Fused]
    dense_share: float
    floors: Mapping[str, float]
    miss: bool
    miss_outside: bool


@dataclass(slots=True)
class Searcher:
    """Searches one palace for its readers. `legs`: which of lock, bm25 and dense take part."""

    vectors: VectorStore
    graph: Graph
    names: Names
    embedder: Embedder | None
    sparse: SparseEmbedder
    settings: settings.Search
    clock: Callable[[], datetime]
    state: State
    legs: frozenset[str] = frozenset(LEGS)
    _ask: Asker = field(init=False)
    _run: Runner = field(init=False)
    _coverage: Coverage = field(init=False)
    _find_rooms: Finder = field(init=False)

    def __post_init__(self) -> None:
        self._ask = Asker(self.sparse, self.embedder, self.state, wanted="dense" in self.legs)
        self._run = Runner(self.vectors, self.names, self.settings.prefetch, self.legs)
        self._coverage = Coverage(self.vectors, self.state)
        self._find_rooms = Finder(self.graph, self.state)

    def search(self, query: str, reader: Reader, **options: Unpack[Options]) -> Answer:
        """The answer inside the reader's cubes, and inside the rooms named where there are such.

        Raises UsageError for an empty question, a limit outside 1 to 100, or a status that does not exist.
        """
        limit = _limit(options.get("limit"), self.settings.limit)
        hidden = HIDDEN_STATUSES - {_status(s) for s in options.get("statuses", ())}
        question = self._ask(query)
        where = self._find_rooms(reader, options.get("rooms", ()), options.get("wings", ()), hidden)
        found = self._find(question, where, around=options.get("elsewhere", True))
        hits = () if found.miss else self._hits(found, where.scope, limit, explain=options.get("explain", False))
        hints = () if hits else self._miss_hints(found, where)
        return Answer(
            status="hit" if hits else "miss",
            fallback=where.reason is not None,
            reason=where.reason,
            hits=hits,
            elsewhere=() if found.miss_outside else self._elsewhere(found, where),
            hints=(*where.hints, *question.hints, *hints),
            receipt=self._receipt(reader, options, where, found),
        )

    def rooms(self, reader: Reader, asked: RoomsQuery) -> RoomsPage:
        """A page of the reader's rooms with their descriptions; with a query, in the order in which they suit it."""
        describe = Describer(self.vectors, self.names, reader)
        return list_rooms(self.graph, reader, asked, describe, self._holding(asked.query, reader))

    def calibrate(self, reader: Reader) -> Floor | None:
        """The floor of this palace, by its own known questions asked of all the cubes that the reader sees.

        None without a model, while vectors are still on their way, and for a palace of too few notes.
        """
        if self.embedder is None or self.vectors.share(reader.scope()) < _SURE_SHARE:
            return None
        known = known_questions(self.vectors.scroll())
        return calibrate(known, partial(self._probe, reader.scope()), self.embedder.fingerprint)

    def _probe(self, scope: Scope, known: Known) -> Signs | None:
        """What a known question finds beside the chunk that it was taken from."""
        question = self._ask(known.text)
        legs = self._run(question, scope)
        return self._signs(question, {n: [s for s in leg if s.id != known.source] for n, leg in legs.items()}, scope)

    def _find(self, question: Question, where: Where, *, around: bool) -> _Found:
        legs = self._run(question, where.scope)
        others = self._run(question, where.whole) if around and where.narrowed else legs
        both = {name: _together(legs[name], others[name]) for name in legs}
        share = self.vectors.share(where.scope)
        # One fusion for what is inside and outside, so that their scores can be compared. While dense vectors are
        # still on their way, their leg weighs as much as there is of it: the nearest of a few is near to nothing.
        ranking = fuse({n: leg for n, leg in both.items() if n != "lock"}, self.settings.fusion, {"dense": share})
        ranked = locked(ranking.order, both["lock"])
        notes = {s.note_id for leg in legs.values() for s in leg} if others is not legs else None
        floor = self._floor(question, share)
        inside, outside = (self._strength(floor, question, found, where.whole) for found in (legs, others))
        return _Found(
            legs=legs,
            ranking=ranking,
            inside=ranked if notes is None else [f for f in ranked if f.note_id in notes],
            outside=() if notes is None else [f for f in ranked if f.note_id not in notes],
            dense_share=share,
            floors={}
            if floor is None or inside is None
            else {"floor": round(floor.floor, 6), "strength": round(inside, 6)},
            miss=_under(floor, inside) and not _sure(legs),
            miss_outside=_under(floor, outside) and not _sure(others),
        )

    def _floor(self, question: Question, share: float) -> Floor | None:
        """The floor, if it was drawn for the model at hand and nearly every chunk has its dense vector."""
        floor = self.state.floor()
        if floor is None or question.dense is None or self.embedder is None or share < _SURE_SHARE:
            return None
        return floor if floor.model == self.embedder.fingerprint else None

    def _strength(self, floor: Floor | None, question: Question, legs: Legs, whole: Scope) -> float | None:
        signs = self._signs(question, legs, whole) if floor is not None else None
        return floor.strength(signs) if floor is not None and signs is not None else None

    def _signs(self, question: Question, legs: Legs, whole: Scope) -> Signs | None:
        if not legs["dense"]:
            return None
        best = legs["bm25"][0].score if legs["bm25"] else 0.0
        return Signs(legs["dense"][0].score, self._coverage(question.sparse, best, whole))

    def _hits(self, found: _Found, scope: Scope, limit: int, *, explain: bool) -> tuple[Hit, ...]:
        kept = diverse(found.inside, self.settings.per_note, limit)
        payloads = self._payloads(kept, scope)
        marks = {s.note_id: s.score for s in found.legs["lock"]}
        hits = []
        for f in kept:
            legs = found.ranking.legs(f.id) | ({"lock": marks[f.note_id]} if f.note_id in marks else {})
            if explain:
                legs |= {f"{leg}_share": part.get(f.id, 0.0) for leg, part in found.ranking.shares.items()}
            if f.id in payloads:
                hits.append(receipt.hit(f, payloads[f.id], legs))
        return tuple(hits)

    def _elsewhere(self, found: _Found, where: Where) -> tuple[Elsewhere, ...]:
        if not where.narrowed:
            return ()
        best = found.inside[0].score if found.inside and not found.miss else -1.0
        kept = diverse((f for f in found.outside if f.score > best), 1, MOST_ELSEWHERE)
        payloads = self._payloads(kept, where.whole)
        return tuple(receipt.elsewhere(f, payloads[f.id]) for f in kept if f.id in payloads)

    def _miss_hints(self, found: _Found, where: Where) -> tuple[str, ...]:
        if not found.inside:
            return ("Nothing here has any of these words, nor anything near them.",)
        kept = diverse(found.inside, 1, MOST_ELSEWHERE)
        payloads = self._payloads(kept, where.scope)
        near = (receipt.near(payloads[f.id]) for f in kept if f.id in payloads)
        return tuple(f"Near, but no answer (below the floor): {name}" for name in near)

    def _payloads(self, candidates: Sequence[Fused], scope: Scope) -> dict[ChunkId, Payload]:
        return {r.id: r.payload for r in self.vectors.retrieve([f.id for f in candidates], scope)} if candidates else {}

    def _receipt(self, reader: Reader, options: Options, where: Where, found: _Found) -> Receipt:
        return Receipt(
            time=self.clock().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            reader=reader.name,
            cubes=tuple(sorted(where.scope.cubes)),
            asked={"rooms": tuple(options.get("rooms", ())), "wings": tuple(options.get("wings", ()))},
            searched=where.searched,
            fallback=where.reason is not None,
            legs={name: len(leg) for name, leg in found.legs.items()},
            floors=found.floors,
            generation=self.state.generation(),
            model=self.state.model(),
            dense_share=round(found.dense_share, 6),
        )

    def _holding(self, query: str | None, reader: Reader) -> dict[RoomAddress, float]:
        """How much of the lexical leg's best each room holds; the fullest room has 1.0."""
        if not query or not query.strip():
            return {}
        scope = reader.scope()
        top = self.vectors.sparse(self.sparse.query(query), scope, _HOLDING)
        weights = shares(top)
        held: dict[RoomAddress, float] = {}
        for record in self.vectors.retrieve([s.id for s in top], scope):
            for place in record.payload.place:
                wing, _, room = place.partition("/")
                address = RoomAddress(record.payload.cube_id, wing, room)
                held[address] = held.get(address, 0.0) + weights[record.id]
        most = max(held.values(), default=0.0)
        return {address: weight / most for address, weight in held.items()} if most > 0 else {}


def _limit(asked: int | None, default: int) -> int:
    limit = default if asked is None else asked
    if not 1 <= limit <= MOST_HITS:
        raise UsageError(f"A limit of {limit} hits cannot be given.", f"Ask for 1 to {MOST_HITS}.")
    return limit


def _status(name: str) -> Status:
    try:
        return Status(name)
    except ValueError as error:
        known = ", ".join(s.value for s in Status)
        raise UsageError(f"There is no status “{name}”.", f"There are: {known}.") from error


def _together(inside: Sequence[Scored], around: Sequence[Scored]) -> list[Scored]:
    """Both lists as one leg, best first."""
    if inside is around:
        return list(inside)
    return sorted({s.id: s for s in (*around, *inside)}.values(), key=lambda s: (-s.score, s.id))


def _under(floor: Floor | None, strength: float | None) -> bool:
    return floor is not None and strength is not None and strength < floor.floor


def _sure(legs: Legs) -> bool:
    return bool(legs["lock"]) and legs["lock"][0].score >= EXACT
