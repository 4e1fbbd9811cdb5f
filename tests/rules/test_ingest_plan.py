"""What an ingest will do is the difference between what is seen and what the ledger knows."""

from dataclasses import replace

import pytest

from ingest.plan import Action, Loss, classify, moved, protected
from ingest.source import Seen
from palace.stores.catalogue import LedgerRow, placements_json
from palace.vocabulary import NoteId, NoteRef, Placement, RoomAddress, Sha256, Stat, Status, Trust

ROOM = Placement(RoomAddress("global", "work", "ideas"), "Work", "Ideas", "folder:work/ideas")
STAT = Stat(1, 2, 3, 4, 5)
SEEN = Seen(NoteRef("global", "v", "a.md"), "/f", (ROOM,), STAT, Sha256("aa"), Trust.OWNER, Status.ACTIVE, "obsidian")
ROW = LedgerRow(
    SEEN.ref, "/f", Sha256("aa"), placements_json((ROOM,)), "done", stale=False, title="a", modified="", status="active",
    lead_chunk="", stat=STAT,
)  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "row", "action"),
    [
        (SEEN, None, Action.NEW),
        (SEEN, ROW, Action.NOTHING),
        (replace(SEEN, sha256=Sha256("bb")), ROW, Action.CHANGED),
        (SEEN, replace(ROW, state="intent"), Action.CHANGED),
        (SEEN, replace(ROW, state="forget"), Action.NEW),
        (SEEN, replace(ROW, stale=True), Action.CHANGED),
        (replace(SEEN, placements=()), ROW, Action.ROOMS_ONLY),
        (replace(SEEN, stat=replace(STAT, mtime_ns=9)), ROW, Action.TOUCHED),
        (replace(SEEN, stat=replace(STAT, ctime_ns=9, inode=9)), ROW, Action.NOTHING),
        (replace(SEEN, file="/g"), ROW, Action.TOUCHED),
    ],
)
def test_what_a_note_needs(seen: Seen, row: LedgerRow | None, action: Action) -> None:
    assert classify(seen, row) is action


def test_a_moved_note_is_one_that_went_and_came_with_the_same_bytes_in_one_cube() -> None:
    gone = [("global", Sha256("a")), ("global", Sha256("a")), ("dev", Sha256("b"))]
    new = [("global", Sha256("a")), ("global", Sha256("b")), ("dev", Sha256("b"))]
    assert moved(gone, new) == 2


def test_an_absent_source_and_a_great_loss_are_kept_and_what_left_the_settings_is_not() -> None:
    ids = tuple(NoteId(str(i)) for i in range(30))
    group, other = ("dev", "private:dev"), ("dev", "private:old")
    assert protected({group: Loss(ids[:1], 10)}, frozenset({group}), []) == {group}
    assert protected({group: Loss(ids, 40)}, frozenset(), [group]) == {group}
    assert protected({group: Loss(ids, 1000)}, frozenset(), [group]) == frozenset()
    assert protected({group: Loss(ids[:20], 20)}, frozenset(), [group]) == frozenset()
    assert protected({other: Loss(ids, 30)}, frozenset(), [group]) == frozenset()
