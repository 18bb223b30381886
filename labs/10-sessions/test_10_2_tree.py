"""Lab 10.2: a tree that grows by one line at a time."""

import os
import random

from pi_course import sessions
from pi_course.bench import FakeClock
from pi_course.errors import CourseError
from pi_course.history import SYNTHETIC, check_history, repair_history
from pi_course.messages import ToolCall, assistant, text_of, to_json, tool_result, user


def _open(path, at=1_000):
    return sessions.SessionStore.open(path, clock=FakeClock(at))


def _code(function, *args):
    try:
        return function(*args)
    except CourseError as error:
        return error.code


def _ids(entries):
    return [entry.id for entry in entries]


def _watch_fsync(monkeypatch):
    """The list of all that os.fsync will be called for: which file, and how long it was."""
    synced = []

    def fsync(handle):
        about = os.fstat(handle if isinstance(handle, int) else handle.fileno())
        synced.append((about.st_ino, about.st_size))

    monkeypatch.setattr(os, "fsync", fsync)
    return synced


def _no_disk(handle):
    raise OSError("no space left on device")


def test_entries_follow_each_other_from_the_root_to_the_leaf(
    tmp_path, monkeypatch
):
    """Each append is one more line on the disk and the next step of the path, reopened too."""
    synced = _watch_fsync(monkeypatch)

    def check_synced():
        about = path.stat()
        assert (about.st_ino, about.st_size) in synced, "returned before os.fsync of all it wrote"

    path = tmp_path / "new" / "folder" / "s.jsonl"
    clock = FakeClock(1_000)
    store = sessions.SessionStore.open(path, clock=clock)
    assert (store.leaf, store.path(), store.tree()) == (None, (), {})
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0, "the file is for its owner only"
        folders = [file for file, _ in synced]
        assert path.parent.stat().st_ino in folders, "no os.fsync of the folder of a new file"
    payload = {"list": [1, 2]}
    first = store.append("note", payload)
    check_synced()
    payload["list"].append(3)
    clock.advance(5)
    second = store.append("message", to_json(user("hi", at=3)))
    third = store.append("mark", None)
    check_synced()
    assert len({first, second, third}) == 3
    assert store.leaf == third
    assert [(e.id, e.parent_id, e.kind, e.at) for e in store.path()] == [
        (first, None, "note", 1_000),
        (second, first, "message", 1_005),
        (third, second, "mark", 1_005),
    ]
    assert store.path()[0].payload == {"list": (1, 2)}
    assert store.path(second) == store.path()[:2]
    store.close()
    assert path.read_bytes().count(b"\n") == 3
    again = _open(path)
    assert again.path()[:2] == store.path(second)
    assert again.leaf == third
    assert again.append("note", "after") not in (first, second, third)
    assert len(again.path()) == 4


def test_a_branch_leaves_the_other_one_alone(tmp_path, monkeypatch):
    """After a step back new entries grow beside the old ones, which stay the same to the byte."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    path = tmp_path / "s.jsonl"
    store = _open(path)
    a = store.append("note", "a")
    b = store.append("note", "b")
    c = store.append("note", "c")
    old, old_bytes = store.path(), path.read_bytes()
    store.branch(a)
    assert (store.leaf, path.read_bytes()) == (a, old_bytes)
    d = store.append("note", "d")
    assert _ids(store.path()) == [a, d]
    assert store.path(c) == old
    store.branch(b)
    e = store.append("note", "e")
    store.branch(None)
    assert store.path() == ()
    f = store.append("note", "f")
    assert _ids(store.path()) == [f]
    assert store.tree() == {None: (a, f), a: (b, d), b: (c, e)}
    assert path.read_bytes().startswith(old_bytes)
    assert _open(path).tree() == store.tree()
    assert _open(path).path(c) == old


def test_an_unknown_entry_is_an_error_and_moves_nothing(tmp_path):
    """Neither a branch to nowhere nor a path from nowhere is guessed at."""
    store = _open(tmp_path / "s.jsonl")
    a = store.append("note", "a")
    for unknown in ["entry-99", "", a.upper() + "x"]:
        assert _code(store.branch, unknown) == "UNKNOWN_ENTRY"
        assert _code(store.path, unknown) == "UNKNOWN_ENTRY"
    assert store.leaf == a
    assert _ids(store.path()) == [a]


def test_reopening_changes_nothing(tmp_path, monkeypatch):
    """Any appends and branches read back as the same tree, with the newest entry as the leaf."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    for seed in range(12):
        where = f"seed {seed}"
        rng = random.Random(seed)
        path = tmp_path / f"{seed}.jsonl"
        store, parents = _open(path), {}
        for step in range(rng.randrange(1, 16)):
            if rng.random() < 0.4:
                store.branch(rng.choice([None, *parents]))
            leaf = store.leaf
            parents[store.append("note", step)] = leaf
            if rng.random() < 0.2:
                store = _open(path)
        content = path.read_bytes()
        again = _open(path)
        assert again.report.quarantined == () and again.report.torn_tail == b"", where
        assert {e.id: e.parent_id for e in again.report.kept} == parents, where
        assert again.leaf == list(parents)[-1], where
        for entry_id, parent in parents.items():
            walked = again.path(entry_id)
            assert walked[-1].id == entry_id, where
            assert walked[:-1] == (again.path(parent) if parent else ()), where
            assert walked == store.path(entry_id), where
        children = {parent: () for parent in parents.values()}
        for entry_id, parent in parents.items():
            children[parent] += (entry_id,)
        assert again.tree() == store.tree() == children, where
        assert path.read_bytes() == content, where


def test_what_is_refused_is_not_written(tmp_path, monkeypatch):
    """Bad payloads, another writer, a failed write, a closed store: the store is as it was."""
    path = tmp_path / "s.jsonl"
    store, other = _open(path), _open(path)
    a = store.append("note", "a")
    content = path.read_bytes()
    cycle = []
    cycle.append(cycle)
    for kind, payload, code in [
        ("note", float("nan"), "NOT_JSON"),
        ("note", {"a": {1, 2}}, "NOT_JSON"),
        ("note", cycle, "CYCLIC"),
        ("message", {"role": "user", "content": []}, "INVALID_MESSAGE"),
        ("message", "hi", "INVALID_MESSAGE"),
        ("", "x", "INVALID_ENTRY"),
    ]:
        assert _code(store.append, kind, payload) == code, (kind, payload)
    assert _code(other.append, "note", "b") == "SESSION_CHANGED"
    assert (other.leaf, other.path()) == (None, ())
    assert (store.leaf, path.read_bytes()) == (a, content)
    b = store.append("note", "b")
    store.close()
    store.close()
    assert _code(store.append, "note", "c") == "SESSION_CLOSED"
    store = _open(path)
    assert _ids(store.path()) == [a, b]
    before = (store.leaf, store.path(), store.tree())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _no_disk)
        assert _code(store.append, "note", "c") == "WRITE_FAILED", "os.fsync failed"
    assert (store.leaf, store.path(), store.tree()) == before, "a failed write was remembered"
    assert _code(store.append, "note", "d") == "SESSION_CHANGED", "after a failed write"
    assert (store.leaf, store.path(), store.tree()) == before
    again = _open(path)
    again.append("note", "e")
    assert _ids(again.path()[:2]) == [a, b]
    assert again.path()[-1].payload == "e"
    if os.name == "posix":  # elsewhere a file that a store keeps open cannot be removed
        path.unlink()
        assert _code(again.append, "note", "f") == "SESSION_CHANGED", "the file is gone"
        assert not path.exists()


def test_a_torn_tail_never_becomes_part_of_the_next_entry(tmp_path, monkeypatch):
    """Tear the last line anywhere, open, append, open: old entries and the new one are there."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    path = tmp_path / "s.jsonl"
    store = _open(path)
    a, b = store.append("note", "a"), store.append("note", "b")
    before = path.read_bytes()
    c = store.append("note", "写到一半")
    last = path.read_bytes().removeprefix(before)
    for cut in [*range(0, len(last) - 2, 5), *range(len(last) - 2, len(last) + 1)]:
        where = f"cut after byte {cut} of {last!r}"
        path.write_bytes(before + last[:cut])
        store = _open(path)
        new = store.append("note", "after the crash")
        again = _open(path)
        survivors = [a, b] if cut < len(last) - 1 else [a, b, c]
        assert _ids(again.path()) == [*survivors, new], where
        assert again.path()[-1].payload == "after the crash"
        assert (again.report.quarantined, again.report.torn_tail) == ((), b""), where


def test_a_call_is_answered_once_wherever_the_crash_came(tmp_path, monkeypatch):
    """Tear the result of a call: resumed, the call has the real result or one made up, not two."""
    path = tmp_path / "s.jsonl"
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    call = ToolCall("c1", "run_program", {"argv": ["make"]})
    store = _open(path)
    store.append("message", to_json(user("build it", at=1)))
    store.append("note", {"title": "no message"})
    store.append("message", to_json(assistant([call], stop="tool_use", at=2)))
    before = path.read_bytes()
    store.append("message", to_json(tool_result(call, "built", at=3)))
    last = path.read_bytes().removeprefix(before)
    for cut in (0, 1, len(last) // 2, len(last) - 2, len(last) - 1, len(last)):
        where = f"cut after byte {cut} of {last!r}"
        path.write_bytes(before + last[:cut])
        store = _open(path)
        recorded = sessions.active_messages(store.path())
        resumed = repair_history(recorded).messages
        assert [message.role for message in resumed] == ["user", "assistant", "tool_result"]
        assert check_history(resumed) == []
        answer = resumed[2]
        if cut < len(last) - 1:
            assert answer.is_error and answer.details == SYNTHETIC, where
        else:
            assert text_of(answer) == "built", where
        for message in resumed[len(recorded):]:
            store.append("message", to_json(message))
        assert tuple(sessions.active_messages(_open(path).path())) == resumed, where
