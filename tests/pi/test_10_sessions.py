"""Chapter 10: a session file torn at every byte of its last record, and opened again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pi_course.bench import FakeClock
from pi_course.history import repair_history
from pi_course.messages import (
    Message,
    ToolCall,
    ToolResultMessage,
    assistant,
    to_json,
    tool_result,
    user,
)
from pi_course.sessions import Entry, SessionStore, active_messages, recover

from tests.pi.arbitrary import cut_at, is_legal, json_values

pytestmark = pytest.mark.usefixtures("without_fsync")

CALLS = (ToolCall("call-1", "读", {"路径": "甲\u2028.txt"}), ToolCall("call-2", "read", {}))
ANSWERS = tuple(tool_result(call, f"结果 {call.id} \U0001f642", at=3) for call in CALLS)
ASKED: list[Message] = [user("你好\n", at=1), assistant(CALLS, stop="tool_use", at=2)]
BEFORE: list[tuple[str, Any]] = [("message", to_json(message)) for message in ASKED]

LAST: dict[str, tuple[list[tuple[str, Any]], tuple[str, Any]]] = {
    "user": ([], ("message", to_json(user("第一句\u2028 \U0001f642", at=1)))),
    "assistant": (BEFORE[:1], BEFORE[1]),
    "first result": (BEFORE, ("message", to_json(ANSWERS[0]))),
    "last result": (
        [*BEFORE, ("message", to_json(ANSWERS[0]))], ("message", to_json(ANSWERS[1])),
    ),
    "compaction": (BEFORE, ("compaction", {"summary": "他说你好。", "first_kept_id": "entry-1"})),
    "other kind": (BEFORE, ("笔记", ["{\"id\":\"x\"}\n", {"嵌": [None, True, 1.5]}])),
    "number": (BEFORE, ("n", 123456)),
}  # fmt: skip


def write(path: Path, *records: tuple[str, Any]) -> SessionStore:
    """A session with these entries, one below the other."""
    store = SessionStore.open(path, clock=FakeClock(9))
    for kind, payload in records:
        store.append(kind, payload)
    return store


def answers_of(entries: tuple[Entry, ...]) -> Counter[str]:
    """How many results each call has that the model would be shown."""
    repaired = repair_history(active_messages(entries)).messages
    assert is_legal(repaired)
    return Counter(m.call_id for m in repaired if isinstance(m, ToolResultMessage))


@pytest.fixture(params=LAST)
def torn(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[bytes, bytes, tuple[Entry, ...]]:
    """The bytes before the last record, those of the record, and all entries."""
    earlier, last = LAST[request.param]
    store = write(tmp_path / "whole" / "s.jsonl", *earlier)
    head = (tmp_path / "whole" / "s.jsonl").read_bytes()
    store.append(*last)
    data = (tmp_path / "whole" / "s.jsonl").read_bytes()
    return head, data[len(head) :], store.path()


def test_torn_at_any_byte_only_the_last_record_is_lost_and_no_byte_of_it(
    torn: tuple[bytes, bytes, tuple[Entry, ...]], tmp_path: Path
) -> None:
    """Earlier entries are kept as they were; the last is whole again, or its bytes lie beside."""
    head, last, entries = torn
    path = tmp_path / "s.jsonl"
    for cut in range(len(last) + 1):
        path.write_bytes(head + last[:cut])
        report = recover(path)
        is_whole = cut >= len(last) - 1
        assert report.kept == (entries if is_whole else entries[:-1]), cut
        assert report.quarantined == (), cut
        assert report.torn_tail == (b"" if is_whole else last[:cut]), cut
        assert path.read_bytes() == head + (last if is_whole else b""), cut
        beside = list(tmp_path.glob("s.jsonl.torn-*"))
        saved = [last[:cut]] if report.torn_tail else []
        assert [other.read_bytes() for other in beside] == saved, cut
        for other in beside:
            other.unlink()


def test_after_a_tear_at_any_byte_no_two_records_are_fused(
    torn: tuple[bytes, bytes, tuple[Entry, ...]], tmp_path: Path
) -> None:
    """What is added after the tear is an entry with an id of its own, and it reads back."""
    head, last, _ = torn
    path = tmp_path / "s.jsonl"
    for cut in range(len(last) + 1):
        path.write_bytes(head + last[:cut])
        store = SessionStore.open(path, clock=FakeClock(10))
        kept = store.report.kept
        assert store.leaf == (kept[-1].id if kept else None)
        store.append("message", to_json(user(f"接着 {cut}", at=10)))
        again = recover(path)
        assert again.kept == store.path(), cut
        assert again.kept[:-1] == kept, cut
        assert (again.quarantined, again.torn_tail) == ((), b""), cut
        assert len({entry.id for entry in again.kept}) == len(again.kept), cut


def test_to_open_again_changes_nothing(
    torn: tuple[bytes, bytes, tuple[Entry, ...]], tmp_path: Path
) -> None:
    """Opened once, opened five times: the same entries, the same bytes, the same folder."""
    head, last, _ = torn
    path = tmp_path / "s.jsonl"
    for cut in range(0, len(last) + 1, 3):
        path.write_bytes(head + last[:cut])
        first = recover(path)
        seen = {other.name: other.read_bytes() for other in tmp_path.glob("s.jsonl*")}
        for _ in range(4):
            store = SessionStore.open(path, clock=FakeClock(0))
            store.close()
            assert store.report.kept == first.kept, cut
            assert (store.report.quarantined, store.report.torn_tail) == ((), b""), cut
        assert {p.name: p.read_bytes() for p in tmp_path.glob("s.jsonl*")} == seen, cut


def test_no_call_is_answered_twice_after_a_tear_at_any_byte(
    torn: tuple[bytes, bytes, tuple[Entry, ...]], tmp_path: Path
) -> None:
    """Torn, shown, answered late and shown again: each call has one result, a real one at last."""
    head, last, _ = torn
    path = tmp_path / "s.jsonl"
    for cut in range(len(last) + 1):
        path.write_bytes(head + last[:cut])
        store = SessionStore.open(path, clock=FakeClock(10))
        called = "tool_use" in str([entry.payload for entry in store.path()])
        wanted = Counter(call.id for call in CALLS) if called else Counter[str]()
        assert answers_of(store.path()) == wanted, cut
        if called:
            for answer in ANSWERS:  # both, whether they are there already or not
                store.append("message", to_json(answer))
            store.append("message", to_json(user("好", at=11)))
            entries = recover(path).kept
            assert answers_of(entries) == wanted, cut
            shown = repair_history(active_messages(entries)).messages
            assert [m for m in shown if isinstance(m, ToolResultMessage)] == list(ANSWERS), cut


@settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(st.data())
def test_any_session_torn_anywhere_is_a_beginning_of_itself(
    tmp_path: Path, data: st.DataObject
) -> None:
    """Random payloads and branches, cut at any byte of the file: the entries before it are kept."""
    path = tmp_path / "s.jsonl"
    path.unlink(missing_ok=True)
    store = SessionStore.open(path, clock=FakeClock(1))
    for payload in data.draw(st.lists(json_values, min_size=1, max_size=5)):
        store.append(data.draw(st.sampled_from(["n", "笔记"])), payload)
        if data.draw(st.booleans()):
            ids = [entry.id for entry in recover(path).kept]
            store.branch(data.draw(st.sampled_from([None, *ids])))
    whole, entries = path.read_bytes(), recover(path).kept
    head, _ = cut_at(whole, [data.draw(st.integers(0, len(whole)))])
    path.write_bytes(head)
    report = recover(path)
    kept = report.kept
    assert kept == entries[: len(kept)]
    assert len(kept) >= head.count(b"\n")
    assert report.quarantined == ()
    assert path.read_bytes() == b"".join(whole.splitlines(keepends=True)[: len(kept)])
    assert report.torn_tail == head[len(path.read_bytes()) :]
    for other in tmp_path.glob("s.jsonl.torn-*"):
        other.unlink()


@settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(st.binary(max_size=40), st.integers(0, 3), st.booleans())
def test_noise_in_the_file_costs_no_entry_and_no_byte(
    tmp_path: Path, noise: bytes, place: int, is_line: bool
) -> None:
    """Noise as lines or as the tail: all entries are kept, and every byte is still somewhere."""
    path = tmp_path / "s.jsonl"
    path.unlink(missing_ok=True)
    store = write(path, *BEFORE, ("n", "三"))
    lines = path.read_bytes().splitlines(keepends=True)
    noise = noise + b"\n" if is_line else noise
    lines.insert(place if is_line else 3, noise)
    path.write_bytes(b"".join(lines))
    report = recover(path)
    assert report.kept == store.path()
    assert len(report.quarantined) == noise.count(b"\n")
    assert path.read_bytes() + report.torn_tail == b"".join(lines)
    for other in tmp_path.glob("s.jsonl.torn-*"):
        assert other.read_bytes() == report.torn_tail
        other.unlink()
