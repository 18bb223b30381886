"""Faults of chapter 10: each takes the right function and returns a plausibly wrong one."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from weakref import WeakKeyDictionary

from pi_course.bench import Ids
from pi_course.errors import CourseError
from pi_course.messages import user


def bad_lines_are_swallowed(recover):
    """Skip a line that cannot be read, and say nothing."""
    def faulty(path):
        return replace(recover(path), quarantined=())
    return faulty


def first_bad_line_is_the_end(recover):
    """Stop reading at the first line that cannot be read."""
    def faulty(path):
        report = recover(path)
        if report.quarantined:
            first = report.quarantined[0].line
            return replace(report, kept=report.kept[: first - 1])
        return report
    return faulty


def bad_lines_are_cleaned_up(recover):
    """Write the file anew without the bad lines: the next reader will not be bothered."""
    def faulty(path):
        report = recover(path)
        bad = {line.line for line in report.quarantined}
        lines = enumerate(path.read_bytes().split(b"\n"), start=1)
        path.write_bytes(b"\n".join(line for number, line in lines if number not in bad))
        return report
    return faulty


def newest_first(recover):
    """Return the entries from the end of the file to its beginning."""
    def faulty(path):
        report = recover(path)
        return replace(report, kept=report.kept[::-1])
    return faulty


def tail_is_left(recover):
    """Report the torn tail, and leave it in the file."""
    def faulty(path):
        whole, tail = _halves(path)
        report = recover(path)
        path.write_bytes(whole + tail)
        return report
    return faulty


def whole_tail_is_torn(recover):
    """Take every last line without a newline for a torn one."""
    def faulty(path):
        whole, tail = _halves(path)
        if not tail:
            return recover(path)
        saved = _free_name(path)
        saved.write_bytes(tail)
        saved.chmod(0o600)
        path.write_bytes(whole)
        return replace(recover(path), torn_tail=tail)
    return faulty


def newline_is_forgotten(recover):
    """Keep a whole last line, and forget that the next one needs a line of its own."""
    def faulty(path):
        _, tail = _halves(path)
        report = recover(path)
        if tail and not report.torn_tail:
            path.write_bytes(path.read_bytes().removesuffix(b"\n"))
        return report
    return faulty


def any_json_is_whole(recover):
    """Call a last line whole if it ends like an object, whatever is in it."""
    def faulty(path):
        if _halves(path)[1].endswith(b"}"):
            with path.open("ab") as file:
                file.write(b"\n")
        return recover(path)
    return faulty


def tail_is_thrown_away(recover):
    """Cut the torn tail off without saving it."""
    def faulty(path):
        before = set(path.parent.iterdir())
        report = recover(path)
        for neighbour in set(path.parent.iterdir()) - before:
            neighbour.unlink()
        return report
    return faulty


def one_place_for_all_tails(recover):
    """Save each torn tail under the same name, over the one before."""
    def faulty(path):
        before = set(path.parent.iterdir())
        report = recover(path)
        for neighbour in set(path.parent.iterdir()) - before:
            neighbour.replace(path.with_name(f"{path.name}.torn"))
        return report
    return faulty


def cut_before_saved(recover):
    """Cut the torn tail off first, and save it when that is done."""
    def put(path, content):
        try:
            with path.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise CourseError("WRITE_FAILED", "the disk did not take it") from error

    def faulty(path):
        whole, tail = _halves(path)
        if not tail:
            return recover(path)
        with TemporaryDirectory(dir=path.parent) as folder, _fsync_is(lambda sync, handle: None):
            copy = Path(folder, path.name)
            copy.write_bytes(whole + tail)
            report = recover(copy)
        if not report.torn_tail:
            return recover(path)
        put(path, whole)
        saved = _free_name(path)
        put(saved, tail)
        saved.chmod(0o600)
        return report
    return faulty


def saved_is_enough(recover):
    """Leave it to the system when the bytes get to the disk."""
    def faulty(path):
        with _fsync_is(lambda sync, handle: None):
            return recover(path)
    return faulty


def tail_is_left_to_append(recover):
    """Report the torn tail, and leave it in the file for the next entry to run into."""
    return tail_is_left(recover)


def result_is_lost(recover):
    """Take every last line without a newline for a torn one, a whole result too."""
    return whole_tail_is_torn(recover)


def path_runs_backwards(path):
    """Return the steps in the order in which they are found."""
    def faulty(self, leaf=None):
        return path(self, leaf)[::-1]
    return faulty


def always_below_the_newest(append):
    """Hang a new entry below the entry added last, wherever the leaf is."""
    newest = WeakKeyDictionary()
    def faulty(self, kind, payload):
        if self in newest:
            self.branch(newest[self])
        newest[self] = append(self, kind, payload)
        return newest[self]
    return faulty


def branch_goes_to_the_root(branch):
    """Start a new root when the entry is not known."""
    def faulty(self, entry_id):
        try:
            branch(self, entry_id)
        except CourseError:
            branch(self, None)
    return faulty


def unknown_path_is_empty(path):
    """Return nothing for an entry that is not known."""
    def faulty(self, leaf=None):
        try:
            return path(self, leaf)
        except CourseError:
            return ()
    return faulty


def branch_forgets_the_rest(tree):
    """Show only what is on the present path."""
    def faulty(self):
        here = {entry.id for entry in self.path()}
        below = {p: tuple(i for i in ids if i in here) for p, ids in tree(self).items()}
        return {parent: ids for parent, ids in below.items() if ids}
    return faulty


def first_root_is_the_leaf(open_):
    """Begin at the first entry when a session is opened again."""
    def faulty(cls, path, *, clock, ids=None):
        store = open_(cls, path, clock=clock, ids=ids)
        store.branch(store.report.kept[0].id if store.report.kept else None)
        return store
    return faulty


def anything_is_a_message(append):
    """Record a message that is none under another kind, so that nothing gets lost."""
    def faulty(self, kind, payload):
        try:
            return append(self, kind, payload)
        except CourseError as error:
            if error.code != "INVALID_MESSAGE":
                raise
            return append(self, "note", payload)
    return faulty


def two_writers(open_):
    """Add to the file at its end and below the own leaf, whoever has written there meanwhile."""
    def faulty(cls, path, *, clock, ids=None):
        store = open_(cls, path, clock=clock, ids=ids)
        def append(kind, payload):
            try:
                return cls.append(store, kind, payload)
            except CourseError as error:
                if error.code != "SESSION_CHANGED":
                    raise
            leaf = store.leaf
            report = open_(cls, path, clock=clock).report
            store.__init__(path, report, clock, ids or Ids())
            store.branch(leaf)
            return cls.append(store, kind, payload)
        store.append = append
        return store
    return faulty


def written_is_enough(append):
    """Return as soon as the line is written; the system will bring it to the disk some time."""
    def faulty(self, kind, payload):
        with _fsync_is(lambda sync, handle: None):
            return append(self, kind, payload)
    return faulty


def remembers_before_it_writes(append):
    """Put the entry into the tree first; if the disk then fails, it stays there."""
    def faulty(self, kind, payload):
        errors = []
        def sync_later(sync, handle):
            try:
                sync(handle)
            except OSError as error:
                errors.append(error)
        with _fsync_is(sync_later):
            new = append(self, kind, payload)
        if errors:
            raise CourseError("WRITE_FAILED", "the entry is not on the disk") from errors[0]
        return new
    return faulty


def anyone_may_read(open_):
    """Make a new file with the mode that files usually have."""
    def faulty(cls, path, *, clock, ids=None):
        is_new = not path.exists()
        store = open_(cls, path, clock=clock, ids=ids)
        if is_new:
            path.chmod(0o644)
        return store
    return faulty


def close_is_a_wish(close):
    """Close nothing: the file is opened for each append anyway."""
    def faulty(self):
        return None
    return faulty


def everything_is_said(active_messages):
    """Show notes to the model too, as something that the user said."""
    def faulty(entries):
        said = []
        for entry in entries:
            if entry.kind == "message":
                said += active_messages([entry])
            else:
                said.append(user(str(entry.payload), at=entry.at))
        return said
    return faulty


def _halves(path):
    """The complete lines of a file, and the bytes after them."""
    content = path.read_bytes() if path.is_file() else b""
    end = content.rfind(b"\n") + 1
    return content[:end], content[end:]


def _free_name(path):
    """The first name for a torn tail that no file has."""
    names = (path.with_name(f"{path.name}.torn-{number}") for number in count(1))
    return next(name for name in names if not name.exists())


@contextmanager
def _fsync_is(stand_in):
    """Meanwhile os.fsync(handle) is stand_in(the one before, handle)."""
    before = os.fsync
    os.fsync = lambda handle: stand_in(before, handle)
    try:
        yield
    finally:
        os.fsync = before
