"""Lab 10.1: what a session file holds after anything may have happened to it."""

import json
import os

from pi_course import sessions
from pi_course.errors import CourseError
from pi_course.sessions import BadLine, Entry


def _fields(id, parent=None, kind="note", payload="x", at=7):
    return {"id": id, "parent_id": parent, "kind": kind, "payload": payload, "at": at}


def _line(*args, **options):
    """One line as the file has it: canonical JSON and a newline."""
    fields = _fields(*args, **options)
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode()


def _user(text):
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}


def _neighbours(path):
    """The contents of all other files in the folder."""
    return [other.read_bytes() for other in path.parent.iterdir() if other != path]


def test_whole_entries_are_kept_as_they_stand(tmp_path):
    """A healthy file gives its entries in file order, and is not changed by a single byte."""
    path = tmp_path / "s.jsonl"
    lines = [
        _line("e1", kind="message", payload=_user("你好\u2028!")),
        _line("e2", "e1", payload={"deep": [1, {"er": None}]}),
        _line("e3", "e1", payload=None),
        _line("root-2", kind="any kind at all", at=0),
        _line("e4", "e2"),
    ]
    path.write_bytes(b"".join(lines))
    report = sessions.recover(path)
    assert [entry.id for entry in report.kept] == ["e1", "e2", "e3", "root-2", "e4"]
    assert [entry.parent_id for entry in report.kept] == [None, "e1", "e1", None, "e2"]
    assert report.kept[1] == Entry("e2", "e1", "note", {"deep": (1, {"er": None})}, 7)
    assert (report.quarantined, report.torn_tail) == ((), b"")
    assert sessions.recover(path) == report
    assert path.read_bytes() == b"".join(lines)
    assert _neighbours(path) == []
    path.write_bytes(b"")
    assert sessions.recover(path) == sessions.RecoveryReport((), (), b"")
    try:
        sessions.recover(tmp_path / "no-such-file")
    except CourseError as error:
        assert error.code == "NOT_FOUND"
    else:
        raise AssertionError("a file that is not there was recovered")


def test_a_bad_line_is_reported_and_left_where_it_is(tmp_path):
    """Each line that is no entry of the tree is named with its code; those after it still count."""
    path = tmp_path / "s.jsonl"
    lines = [
        (_line("e1"), None),
        (b'{"id":"e2","parent\n', "NOT_JSON"),
        (b"\0\0\0\0\n", "NOT_JSON"),
        (b"\n", "NOT_JSON"),
        (_line("e2", "e1", payload="?").replace(b"?", b"\xff"), "BAD_UTF8"),
        (b"[1,2]\n", "INVALID_ENTRY"),
        (_line("e2", "e1").replace(b'"at":7', b'"at":true'), "INVALID_ENTRY"),
        (_line("e2", "e1").replace(b'"at":7', b'"at":7,"more":1'), "INVALID_ENTRY"),
        (_line("e2", "e1").replace(b'"at":7,', b""), "INVALID_ENTRY"),
        (_line("", "e1"), "INVALID_ENTRY"),
        (_line("e2", 1), "INVALID_ENTRY"),
        (_line("e2", "e1", kind="message", payload={"role": "user"}), "INVALID_MESSAGE"),
        (_line("e1", None, payload="again"), "DUPLICATE_ENTRY"),
        (_line("e2", "e2"), "UNKNOWN_PARENT"),
        (_line("e3", "e4"), "UNKNOWN_PARENT"),
        (_line("e4", "e3"), "UNKNOWN_PARENT"),
        (_line("e2", "e1"), None),
        (_line("e4", "e2"), None),
    ]
    path.write_bytes(b"".join(line for line, _ in lines))
    report = sessions.recover(path)
    assert report.quarantined == tuple(
        BadLine(number, code) for number, (_, code) in enumerate(lines, start=1) if code
    )
    assert [(entry.id, entry.payload) for entry in report.kept] == [
        ("e1", "x"), ("e2", "x"), ("e4", "x"),
    ]
    assert path.read_bytes() == b"".join(line for line, _ in lines)
    assert sessions.recover(path) == report


def test_a_tear_at_any_byte_costs_the_last_entry_at_most(tmp_path, monkeypatch):
    """Cut the last line anywhere: what is before it is kept, a whole entry too, no byte is lost."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    path = tmp_path / "s.jsonl"
    before = _line("e1", kind="message", payload=_user("first")) + _line("e2", "e1")
    last = _line("e3", "e2", payload=["写到一半 \U0001f642"])
    torn = []
    for cut in range(len(last)):
        path.write_bytes(before + last[:cut])
        report = sessions.recover(path)
        is_whole = cut == len(last) - 1
        kept = ["e1", "e2", "e3"] if is_whole else ["e1", "e2"]
        assert [entry.id for entry in report.kept] == kept, cut
        assert report.quarantined == ()
        assert report.torn_tail == (b"" if is_whole else last[:cut])
        assert path.read_bytes() == (before + last if is_whole else before), cut
        again = sessions.recover(path)
        assert (again.kept, again.quarantined, again.torn_tail) == (report.kept, (), b"")
        torn += [report.torn_tail] if report.torn_tail else []
    assert sorted(_neighbours(path)) == sorted(torn)


def test_a_tail_that_is_json_but_no_entry_is_torn_too(tmp_path):
    """A last line without a newline is kept only if it would be kept with one."""
    path = tmp_path / "s.jsonl"
    tails = [b"7", b"{}", b"\0\0\0", b"\xe4\xbd", b" ", _line("e1"), _line("e2", "no-parent")]
    for tail in [tail.rstrip(b"\n") for tail in tails]:
        path.write_bytes(_line("e1") + tail)
        report = sessions.recover(path)
        assert [entry.id for entry in report.kept] == ["e1"]
        assert (report.quarantined, report.torn_tail) == ((), tail)
        assert path.read_bytes() == _line("e1")
        assert tail in _neighbours(path)


def test_no_byte_is_lost_when_the_disk_fails_on_the_way(tmp_path, monkeypatch):
    """Whichever step of the repair fails, the torn bytes are in the file or beside it."""
    path = tmp_path / "s.jsonl"
    tail = b'{"at":7,"id":"e2'
    for good_steps in range(4):
        steps = iter(range(good_steps))

        def fsync(handle, steps=steps):
            if next(steps, None) is None:
                raise OSError("no space left on device")

        path.write_bytes(_line("e1") + tail)
        for neighbour in tmp_path.glob("s.jsonl?*"):
            neighbour.unlink()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            try:
                sessions.recover(path)
            except CourseError as error:
                assert error.code == "WRITE_FAILED"
        assert tail in [path.read_bytes().removeprefix(_line("e1")), *_neighbours(path)]
        assert [entry.id for entry in sessions.recover(path).kept] == ["e1"]
        assert path.read_bytes() == _line("e1")
