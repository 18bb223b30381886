"""Find the wanted files among the entries of a submission, and judge the places they lie in."""

from __future__ import annotations

import difflib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from course.submission import ENVIRONMENT, Entry, Kind, Rejected, shown

COMPILED = (".so", ".pyd", ".dll", ".dylib", ".pyc", ".pyo", ".pth", ".egg", ".whl", ".pyz")
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst")


def place(
    entries: Sequence[Entry], wanted: Sequence[str]
) -> tuple[Mapping[str, Entry], Sequence[str]]:
    """The entry for each wanted path, and notes on where it was found."""
    entries = _without_environments(entries, wanted)
    for path, times in Counter(e.path for e in entries if e.kind is not Kind.FOLDER).items():
        if times > 1:
            raise Rejected(f"{shown(path)} is in the archive {times} times")
    root = _root(entries, wanted)
    found = {want: _find(entries, want, root) for want in wanted}
    for region in {_region(entry.path, want) for want, entry in found.items()}:
        _check_region(entries, region)
    notes = [f"{shown(e.path)} was taken as {w}" for w, e in found.items() if e.path != w]
    return found, notes


def _without_environments(entries: Sequence[Entry], wanted: Sequence[str]) -> list[Entry]:
    """The entries outside virtual environments, unless the wanted files lie in one."""
    marks = [entry.path for entry in entries if entry.name == ENVIRONMENT]
    folders = {mark.removesuffix(ENVIRONMENT) for mark in marks} - {""}
    matches = [e.path for e in entries if any(_matched(e.path, w) == _length(w) for w in wanted)]
    apart = tuple(f for f in folders if not any(match.startswith(f) for match in matches))
    return [entry for entry in entries if not entry.path.startswith(apart)]


def _root(entries: Sequence[Entry], wanted: Sequence[str]) -> str | None:
    """The folder (with its slash) from which most wanted paths are right, the least deep one."""
    roots: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        for want in wanted:
            if entry.kind is not Kind.FOLDER and _matched(entry.path, want) == _length(want):
                roots[entry.path.removesuffix(want)].add(want)
    ranks = {root: (len(found), -root.count("/")) for root, found in roots.items()}
    first = max(ranks.values(), default=None)
    best = [root for root, rank in ranks.items() if rank == first]
    if len(best) > 1:
        places = " and ".join(f"{shown(root)}{wanted[0]}" for root in sorted(best)[:2])
        raise Rejected(f"which of your files counts: {places}? Send only one of them")
    return best[0] if best else None


def _find(entries: Sequence[Entry], want: str, root: str | None) -> Entry:
    """The one entry that is meant by `want`: below the root, or else the best match by name."""
    if root is not None:
        same = [entry for entry in entries if entry.path == f"{root}{want}"]
    else:
        same = [entry for entry in entries if _matched(entry.path, want)]
    same = [entry for entry in same if entry.kind is not Kind.FOLDER]
    if not same:
        raise _missing(entries, want)
    most = max(_matched(entry.path, want) for entry in same)
    best = [entry for entry in same if _matched(entry.path, want) == most]
    if len(best) > 1:
        places = " and ".join(shown(entry.path) for entry in best[:2])
        raise Rejected(f"which of your files is {want}: {places}? Send only one of them")
    return best[0]


def _missing(entries: Sequence[Entry], want: str) -> Rejected:
    for entry in entries:
        if entry.kind is Kind.LINK and entry.name in PurePosixPath(want).parts:
            return Rejected(f"{shown(entry.path)} is a link; send the folder itself")
    files = [entry for entry in entries if entry.kind is Kind.FILE]
    if not files:
        return Rejected(f"{want} is missing: the submission holds no files")
    name = PurePosixPath(want).name
    names = {entry.name.casefold(): entry.path for entry in reversed(files)}
    close = difflib.get_close_matches(name.casefold(), names, n=1)
    close = close or [found for found in names if PurePosixPath(name).stem in found]
    if not close:
        packed = [shown(entry.path) for entry in files if entry.name.lower().endswith(ARCHIVES)]
        inside = f"; is it in {packed[0]}? Send what that holds" if packed else ""
        return Rejected(f"{want} is missing{inside}")
    near = shown(names[close[0]])
    return Rejected(f"{want} is missing; is {near} meant?", f"rename {near} to {name}")


def _check_region(entries: Sequence[Entry], region: str) -> None:
    """Refuse what may not stand beside a taken file, or on the way to it."""
    key = _folded(region)
    near = [
        entry
        for entry in entries
        if f"{_folded(entry.path)}/".startswith(f"{key}/")
        or (entry.kind is not Kind.FOLDER and key.startswith(f"{_folded(entry.path)}/"))
    ]
    for entry in near:
        where = shown(entry.path)
        if entry.kind is Kind.LINK:
            raise Rejected(f"{where} is a link; send the file itself")
        if entry.kind is Kind.FILE and entry.links > 1:
            raise Rejected(f"{where} has a second name somewhere (a hard link); send a copy")
        if entry.kind is Kind.FILE and entry.name.lower().endswith(COMPILED):
            raise Rejected(f"{where} is compiled or packed code; send only source")
        if entry.kind is Kind.FILE and entry.name.lower().endswith(ARCHIVES):
            raise Rejected(f"{where} is an archive among the source files; remove it")
    _check_twins(near)


def _check_twins(entries: Sequence[Entry]) -> None:
    """Refuse names that are one and the same on another file system."""
    spellings: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    for entry in entries:
        spellings[_folded(entry.path)].add((entry.path, entry.kind is Kind.FOLDER))
        for parent in PurePosixPath(entry.path).parents:
            spellings[_folded(str(parent))].add((str(parent), True))
    for found in spellings.values():
        if len(found) > 1:
            first, second = sorted(shown(path) for path, _ in found)[:2]
            raise Rejected(f"{first} and {second} are one name on many computers; rename one")


def _region(path: str, want: str) -> str:
    """The outermost folder of the match, such as src; the file itself where only its name fits."""
    parts = PurePosixPath(path).parts
    matched = _matched(path, want)
    return "/".join(parts[: len(parts) - matched + 1]) if matched > 1 else path


def _matched(path: str, want: str) -> int:
    """How many parts of the two paths agree, from the end."""
    pairs = zip(reversed(path.split("/")), reversed(want.split("/")), strict=False)
    count = 0
    for mine, theirs in pairs:
        if mine != theirs:
            break
        count += 1
    return count


def _length(path: str) -> int:
    return path.count("/") + 1


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", path).casefold())
