"""Lab 32.3: a plugin is the bytes of its folder, all of them, read once, under one digest."""

import hashlib
import os

import pi_course.plugin_content as plugin_content
import pi_course.plugin_lock as plugin_lock
import pytest
from pi_course.errors import CourseError
from pi_course.plugin_manifest import ToolDeclaration


def _folder(tmp_path, **files):
    folder = tmp_path / "demo"
    (folder / "tools").mkdir(parents=True, exist_ok=True)
    (folder / "plugin.json").write_bytes(b"{}")
    (folder / "tools" / "inspect.py").write_bytes(b"definition = {}\n")
    return folder


def _code(call, *arguments):
    with pytest.raises(CourseError) as caught:
        call(*arguments)
    return caught.value.code


def _refused(folder, path, data=b"text"):
    """The code when one more file stands in the folder; the file is taken away again."""
    extra = folder / path
    extra.parent.mkdir(exist_ok=True)
    extra.write_bytes(data)
    code = _code(plugin_content.read_content, folder)
    extra.unlink()
    if extra.parent.name == "__pycache__":
        extra.parent.rmdir()
    return code


def test_digest_tells_any_two_trees_apart():
    """Every path and every byte is in the digest, and where one ends and the next begins."""
    trees = [{}, {"a": b""}, {"b": b""}, {"a": b"bc"}, {"ab": b"c"}, {"a": b"b", "c": b""}]
    trees += [{"a": b"b\0c"}, {"a": b"b", "b": b"a"}, {"a": b"a", "b": b"b"}, {"a/b": b""}]
    trees += [{"a": b"", "b": b""}, {"plugin.json": b"1"}, {"plugin.json": b"1", "tool.py": b"2"}]
    digests = [plugin_content.tree_digest(tree) for tree in trees]
    assert len(set(digests)) == len(trees)
    assert all(digest.startswith("sha256:") and len(digest) == 71 for digest in digests)
    known = {"tool.py": b"x = 1\n", "plugin.json": b"{}"}
    expected = "sha256:2324d083de673792beb0674e9663808522ddbb86c41794a8cbc60f472ccfc47f"
    assert plugin_content.tree_digest(known) == expected
    assert plugin_content.tree_digest(dict(sorted(known.items()))) == expected


def test_content_is_every_file_as_it_was_read(tmp_path):
    """The files are held as bytes; what happens in the folder later is another content."""
    folder = _folder(tmp_path)
    content = plugin_content.read_content(folder)
    assert dict(content.files) == {"plugin.json": b"{}", "tools/inspect.py": b"definition = {}\n"}
    assert content.digest == plugin_content.tree_digest(content.files)
    assert content.signature is None
    (folder / "plugin.sig").write_bytes(b"{}")
    signed = plugin_content.read_content(folder)
    assert (signed.digest, signed.signature) == (content.digest, b"{}")
    (folder / "tools" / "inspect.py").write_bytes(b"import payload\n")
    assert content.files["tools/inspect.py"] == b"definition = {}\n"
    assert plugin_content.read_content(folder).digest != content.digest
    with pytest.raises(TypeError):
        content.files["tools/inspect.py"] = b""


def test_no_link_at_any_level(tmp_path):
    """Links are refused also where they stay inside: symbolic ones, hard ones, of folders too."""
    folder = _folder(tmp_path)
    assert plugin_content.read_content(folder).files
    for place in (folder, folder / "tools"):
        for target in (folder / "tools" / "inspect.py", folder / "tools", tmp_path / "missing"):
            link = place / "link.py"
            link.symlink_to(target)
            assert _code(plugin_content.read_content, folder) == "CONTENT_INVALID", target
            link.unlink()
        os.link(folder / "tools" / "inspect.py", place / "twin.py")
        assert _code(plugin_content.read_content, folder) == "CONTENT_INVALID"
        (place / "twin.py").unlink()
    os.mkfifo(folder / "pipe.txt")
    assert _code(plugin_content.read_content, folder) == "CONTENT_INVALID"


def test_no_bytecode_and_no_native_code(tmp_path):
    """What Python or the system could run without reading it as text is refused, not skipped."""
    folder = _folder(tmp_path)
    assert plugin_content.read_content(folder).files
    for path in ("__pycache__/inspect.cpython-311.pyc", "__pycache__/note.txt", "inspect.pyc"):
        assert _refused(folder, path) == "CONTENT_INVALID", path
    for path in ("fast.so", "tools/fast.pyd", "lib.dylib", "site.pth", "inner.zip", "a.PYC"):
        assert _refused(folder, path) == "CONTENT_INVALID", path
    for data in (b"\x7fELF\x02\x01\x01\0", b"text\0", b"\xff\xfe", b"\xcb\x0d\x0d\x0a"):
        assert _refused(folder, "data.txt", data) == "CONTENT_INVALID", data
    assert plugin_content.read_content(folder).files


def test_no_name_that_two_systems_read_differently(tmp_path):
    """Names are plain on every system: no twins by case, no device names, nothing hidden."""
    folder = _folder(tmp_path)
    assert plugin_content.read_content(folder).files
    for name in (".env", "a b.txt", "naïve.txt", "con.txt", "a\\b.txt", "x:y.txt", "end.", "-x"):
        assert _refused(folder, name) == "CONTENT_INVALID", name
    if not (folder / "PLUGIN.JSON").exists():
        assert _refused(folder, "PLUGIN.JSON") == "CONTENT_INVALID"
    limits = plugin_content.ContentLimits(files=1)
    assert _code(plugin_content.read_content, folder, limits) == "CONTENT_INVALID"
    limits = plugin_content.ContentLimits(file_bytes=15)
    assert _code(plugin_content.read_content, folder, limits) == "CONTENT_INVALID"


def test_entry_must_be_the_file_that_the_manifest_means(tmp_path):
    """An entry is a file of the content, with the hash that the manifest gives, if it does."""
    files = {"tools/inspect.py": b"definition = {}\n"}
    content = plugin_content.Content(files, "sha256:0")
    right = hashlib.sha256(files["tools/inspect.py"]).hexdigest()

    def _check(entry, sha256=None):
        tool = ToolDeclaration("inspect", entry, ("read",), sha256)
        return plugin_content.check_entries([tool], content)

    assert _check("tools/inspect.py") is None
    assert _check("tools/inspect.py", right) is None
    assert _code(_check, "tools/inspect.py", "0" * 64) == "DIGEST_MISMATCH"
    assert _code(_check, "tools/other.py") == "ENTRY_ESCAPE"
    assert _code(_check, "tools/other.py", right) == "ENTRY_ESCAPE"


def test_lock_names_one_release_and_one_content():
    """What is locked is a version, a content and a host; anything else is a decision to be made."""
    entry = plugin_lock.LockEntry("1.2.3", "sha256:aa", "1.4.0")
    lock = plugin_lock.parse_lock(plugin_lock.format_lock({"demo": entry}))
    assert dict(lock) == {"demo": entry}
    assert plugin_lock.check_lock(lock, "demo", entry) is None
    other = plugin_lock.LockEntry("1.2.3", "sha256:bb", "1.4.0")
    assert _code(plugin_lock.check_lock, lock, "demo", other) == "DIGEST_MISMATCH"
    for version, api in (("1.2.4", "1.4.0"), ("1.2.2", "1.4.0"), ("1.2.3", "1.5.0")):
        changed = plugin_lock.LockEntry(version, "sha256:aa", api)
        assert _code(plugin_lock.check_lock, lock, "demo", changed) == "NOT_LOCKED"
    assert _code(plugin_lock.check_lock, lock, "other", entry) == "NOT_LOCKED"
    assert _code(plugin_lock.check_lock, {}, "demo", entry) == "NOT_LOCKED"
    for data in (b"[]", b'{"demo": {}}', b'{"demo": 1}', b"{", b'{"demo": {}, "demo": {}}'):
        assert _code(plugin_lock.parse_lock, data) == "INVALID_LOCK", data
