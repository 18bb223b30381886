"""Lab 10.1: what a session file holds after anything may have happened to it."""

import json
import os
import stat

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


def _beside(path):
    """All other files in the folder, with their bytes."""
    return {other.name: other.read_bytes() for other in path.parent.iterdir() if other != path}


def _recover(path, monkeypatch, failing=0):
    """Recover while os.fsync fails at one call (0: none): the code, and what each call was for."""
    calls = []

    def fsync(handle):
        about = os.fstat(handle if isinstance(handle, int) else handle.fileno())
        calls.append((about, path.read_bytes()))
        if len(calls) == failing:
            raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        try:
            sessions.recover(path)
        except CourseError as error:
            return error.code, calls
    return None, calls


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
    assert _beside(path) == {}
    path.write_bytes(b"")
    assert sessions.recover(path) == sessions.RecoveryReport((), (), b"")
    for no_file in (tmp_path / "not-there", tmp_path):
        try:
            sessions.recover(no_file)
        except CourseError as error:
            assert error.code == "NOT_FOUND"
        else:
            raise AssertionError("something that is no file was recovered")


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
    found = {bad.line: bad.code for bad in report.quarantined}
    for number, (line, code) in enumerate(lines, start=1):
        told = found.get(number)
        assert told == code, f"line {number}, {line!r}: {code} expected, {told} reported"
    assert report.quarantined == tuple(BadLine(number, code) for number, code in found.items())
    assert [bad.line for bad in report.quarantined] == sorted(found)
    assert [(entry.id, entry.payload) for entry in report.kept] == [
        ("e1", "x"), ("e2", "x"), ("e4", "x"),
    ]
    assert path.read_bytes() == b"".join(line for line, _ in lines)
    assert sessions.recover(path) == report


def test_a_tear_at_any_byte_costs_the_last_entry_at_most(tmp_path, monkeypatch):
    """Cut the last line anywhere: what is before it is kept, a whole entry too, no byte is lost."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    path = tmp_path / "s.jsonl"
    older = {"s.jsonl.torn-1": b"the first tail", "s.jsonl.torn-2": b"the second"}
    for name, content in older.items():
        path.with_name(name).write_bytes(content)
    before = _line("e1", kind="message", payload=_user("first")) + _line("e2", "e1")
    last = _line("e3", "e2", payload=["断 \U0001f642"])
    for cut in range(len(last)):
        where = f"cut after byte {cut} of {last!r}"
        path.write_bytes(before + last[:cut])
        report = sessions.recover(path)
        is_whole = cut == len(last) - 1
        kept = ["e1", "e2", "e3"] if is_whole else ["e1", "e2"]
        torn = b"" if is_whole else last[:cut]
        assert [entry.id for entry in report.kept] == kept, where
        assert report.quarantined == (), where
        assert report.torn_tail == torn, where
        assert path.read_bytes() == (before + last if is_whole else before), where
        new = {"s.jsonl.torn-3": torn} if torn else {}
        assert _beside(path) == {**older, **new}, where
        again = sessions.recover(path)
        assert (again.kept, again.quarantined, again.torn_tail) == (report.kept, (), b""), where
        for name in new:
            if os.name == "posix":
                assert path.with_name(name).stat().st_mode & 0o077 == 0, "for its owner only"
            path.with_name(name).unlink()


def test_a_tail_that_is_json_but_no_entry_is_torn_too(tmp_path, monkeypatch):
    """A last line without a newline is kept only if it would be kept with one."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    path = tmp_path / "s.jsonl"
    tails = [b"7", b"{}", b"\0\0\0", b"\xe4\xbd", b" ", _line("e1"), _line("e2", "no-parent")]
    saved = {}
    for number, tail in enumerate([tail.rstrip(b"\n") for tail in tails], start=1):
        path.write_bytes(_line("e1") + tail)
        report = sessions.recover(path)
        assert [entry.id for entry in report.kept] == ["e1"], tail
        assert (report.quarantined, report.torn_tail) == ((), tail)
        assert path.read_bytes() == _line("e1"), tail
        saved[f"s.jsonl.torn-{number}"] = tail
        assert _beside(path) == saved, tail


def test_no_byte_is_lost_when_the_disk_fails_on_the_way(tmp_path, monkeypatch):
    """Each step is on the disk before the next, and whichever fails, the torn bytes are there."""
    before, tail, whole = _line("e1"), b'{"at":7,"id":"e2', _line("e2", "e1")

    def session(folder, last):
        path = tmp_path / folder / "s.jsonl"
        path.parent.mkdir()
        path.write_bytes(before + last)
        return path

    path = session("whole", whole.rstrip(b"\n"))
    synced = [(about.st_ino, about.st_size) for about, _ in _recover(path, monkeypatch)[1]]
    assert (path.stat().st_ino, len(before + whole)) in synced, "no os.fsync after the newline"
    path = session("torn", tail)
    _, calls = _recover(path, monkeypatch)
    assert _beside(path) == {"s.jsonl.torn-1": tail}
    saved = path.with_name("s.jsonl.torn-1").stat()
    uncut = [about for about, content in calls if content == before + tail]
    assert (saved.st_ino, len(tail)) in [(about.st_ino, about.st_size) for about in uncut], (
        "no os.fsync of the whole saved tail before the cut")
    if os.name == "posix":
        assert path.parent.stat().st_ino in [about.st_ino for about in uncut], (
            "no os.fsync of the folder before the cut")
    synced = [(about.st_ino, about.st_size) for about, _ in calls]
    assert (path.stat().st_ino, len(before)) in synced, "no os.fsync after the cut"
    for failing, (about, _) in enumerate(calls, start=1):
        where = f"os.fsync failed at call {failing} of {len(calls)}"
        path = session(f"failing-{failing}", tail)
        code, _ = _recover(path, monkeypatch, failing)
        assert code == "WRITE_FAILED" or (code is None and stat.S_ISDIR(about.st_mode)), where
        in_file = path.read_bytes().removeprefix(before)
        assert tail in [in_file, *_beside(path).values()], where
        assert [entry.id for entry in sessions.recover(path).kept] == ["e1"], where
        assert path.read_bytes() == before, where
