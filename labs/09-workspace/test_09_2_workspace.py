"""Lab 09.2: files and programs of one folder, and the gate that lets a call at them."""

import asyncio
import stat
import sys

from pi_course import permissions, workspace
from pi_course.bench import FakeClock
from pi_course.errors import CourseError
from pi_course.messages import ToolCall, text_of
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.tools import ExecContext, ToolRegistry, create_executor


def _code(function, *args, **options):
    try:
        return function(*args, **options)
    except CourseError as error:
        return error.code


def _spec(name, permission):
    return ToolSpec(name, "a tool", {"type": "object", "properties": {}}, permission)


def _context():
    return ExecContext(FakeClock(5), AbortSignal())


def test_a_write_puts_a_new_file_in_place_of_the_old_one(tmp_path):
    """An open reader keeps the old file, the permissions stay, and nothing else is left behind."""
    space = workspace.Workspace(tmp_path)
    space.write_text("src/main.py", "old\n")
    path = tmp_path / "src" / "main.py"
    path.chmod(0o750)
    with path.open("rb") as reader:
        space.write_text("src/main.py", "new\r\n新\n")
        assert reader.read() == b"old\n"
    assert path.read_bytes() == "new\r\n新\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert _code(space.write_text, "src/main.py", "half \ud800") == "NOT_TEXT"
    assert _code(space.write_text, "src", "a folder is no file") == "NOT_A_FILE"
    assert space.read_text("src/main.py") == "new\r\n新\n"
    assert space.list_dir("src") == ["main.py"]
    assert space.list_dir() == ["src/"]


def test_an_edit_has_one_place_and_touches_no_other_byte(tmp_path):
    """No match and two matches, overlapping ones too, change nothing; CRLF and a BOM survive."""
    space = workspace.Workspace(tmp_path)
    path = tmp_path / "f"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree aaa\r\n\xe2\x80\xa8x")
    before = path.read_bytes()
    for old, code in [("four", "NO_MATCH"), ("", "NO_MATCH"), ("o", "MANY_MATCHES"),
                      ("aa", "MANY_MATCHES"), ("Two", "NO_MATCH")]:
        assert _code(space.replace_once, "f", old, "X") == code, old
        assert path.read_bytes() == before
    space.replace_once("f", "one\ntwo\n", "1\n\n2\n")
    assert path.read_bytes() == b"\xef\xbb\xbf1\r\n\r\n2\r\nthree aaa\r\n\xe2\x80\xa8x"
    space.replace_once("f", "three", r"\1 $& \n")
    assert path.read_bytes().endswith(b"2\r\n\\1 $& \\n aaa\r\n\xe2\x80\xa8x")
    path.write_bytes(b"caf\xe9")
    assert _code(space.read_text, "f") == "NOT_TEXT"


def test_a_folder_that_became_a_link_is_judged_again(tmp_path):
    """A path that was fine before is refused once its folder has been replaced by a link out."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    space = workspace.Workspace(root)
    space.write_text("logs/today.txt", "mine")
    (root / "logs").rename(root / "moved")
    (root / "logs").symlink_to(outside)
    (root / "out.txt").symlink_to(outside / "made.txt")
    assert _code(space.write_text, "logs/today.txt", "yours") == "PATH_ESCAPE"
    assert _code(space.write_text, "out.txt", "yours") == "PATH_ESCAPE"
    (outside / "today.txt").write_text("theirs")
    assert _code(space.read_text, "logs/today.txt") == "PATH_ESCAPE"
    assert _code(space.replace_once, "logs/today.txt", "theirs", "mine") == "PATH_ESCAPE"
    assert _code(space.list_dir, "logs") == "PATH_ESCAPE"
    assert [path.name for path in outside.iterdir()] == ["today.txt"]


def test_an_excerpt_is_whole_lines_and_says_how_many(tmp_path):
    """Head and tail cut between lines only, where a newline is, and know the total."""
    head, tail, Excerpt = workspace.truncate_head, workspace.truncate_tail, workspace.Excerpt
    text = "one\ntwo\u2028still two\r\nthree\n\nfive"
    for cut in (head, tail):
        assert cut(text, 1_000) == Excerpt(text, 5, 5)
        assert cut(text, len(text)) == Excerpt(text, 5, 5)
        assert cut("", 10) == Excerpt("", 0, 0)
    assert head(text, 4) == Excerpt("one\n", 1, 5)
    assert head(text, 3) == Excerpt("", 0, 5)
    assert head(text, len(text) - 1) == Excerpt(text.removesuffix("five"), 4, 5)
    assert tail(text, 4) == Excerpt("five", 1, 5)
    assert tail(text, 5) == Excerpt("\nfive", 2, 5)
    assert tail(text, 10) == Excerpt("\nfive", 2, 5)
    assert tail(text, 3) == Excerpt("", 0, 5)


def test_a_program_gets_its_arguments_as_they_are(tmp_path, monkeypatch):
    """No shell reads the list, the program runs in the root, and it sees no secret of ours."""
    monkeypatch.setenv("MODEL_API_KEY", "secret")
    space = workspace.Workspace(tmp_path)
    script = "import os, sys; print(sys.argv[1:], os.environ.get('MODEL_API_KEY')); sys.exit(3)"
    arguments = ["a  b", "$HOME", "; touch made-by-a-shell", "*", "`id`", "'"]
    ended = asyncio.run(space.run_program([sys.executable, "-c", script, *arguments]))
    assert ended.output.splitlines() == [f"{arguments} None"]
    assert ended.exit_code == 3
    assert space.list_dir() == []
    for argv in ["echo one string", [], ["echo", 1], ["echo", "\0"]]:
        assert _code(asyncio.run, space.run_program(argv)) == "INVALID_ARGV"
    assert _code(asyncio.run, space.run_program(["no-such-program-here"])) == "NOT_STARTED"


def test_a_call_runs_once_it_is_allowed_and_not_before(tmp_path):
    """Reading is allowed; a write without the answer True never starts and is answered DENIED."""
    space = workspace.Workspace(tmp_path)
    tools = workspace.core_tools(space)
    assert {tool.spec.name: tool.spec.permission for tool in tools} == {
        "read_file": "read", "list_dir": "read", "write_file": "write", "edit_file": "write",
        "run_program": "execute",
    }
    registry = ToolRegistry(tools)
    executor = create_executor(registry)

    def run(ask, name, **arguments):
        guarded = permissions.gate(executor, registry, permissions.PermissionPolicy(), ask)
        return asyncio.run(guarded(ToolCall("c1", name, arguments), _context()))

    def answers(value):
        async def ask(call, spec):
            if isinstance(value, Exception):
                raise value
            return value
        return ask

    (tmp_path / "a.txt").write_text("hello\nagain\n")
    assert text_of(run(None, "read_file", path="a.txt")) == "hello\nagain\n"
    assert text_of(run(None, "read_file", path="a.txt", from_line=2)) == "again\n"
    assert "a.txt" in text_of(run(None, "list_dir"))
    for ask in [None, *map(answers, [False, None, "yes", 1, RuntimeError("closed")])]:
        denied = run(ask, "write_file", path="b.txt", content="b")
        assert (denied.call_id, denied.tool_name) == ("c1", "write_file")
        assert denied.is_error and denied.details["code"] == "DENIED"
        assert not (tmp_path / "b.txt").exists()
    assert not run(answers(True), "write_file", path="b.txt", content="b").is_error
    assert (tmp_path / "b.txt").read_text() == "b"
    assert not run(answers(True), "edit_file", path="b.txt", old="b", new="c").is_error
    assert (tmp_path / "b.txt").read_text() == "c"
    assert run(None, "no_such_tool").details["code"] == "UNKNOWN_TOOL"


def test_the_strictest_word_counts():
    """A rule can take a permission away and never give one; what is unknown or broken is denied."""
    def no_secrets(spec, args):
        return "deny" if args.get("path") == ".env" else None

    def generous(spec, args):
        return "allow"

    def broken(spec, args):
        return args["path"] and None

    read, write = _spec("read_file", "read"), _spec("write_file", "write")
    words = {"read": "allow", "write": "ask"}
    policy = permissions.PermissionPolicy(words, [no_secrets, generous, broken])
    assert policy.decide(read, {"path": "a"}) == "allow"
    assert policy.decide(write, {"path": "a"}) == "ask"
    assert policy.decide(write, {"path": ".env"}) == "deny"
    assert policy.decide(read, {"path": ".env"}) == "deny"
    assert policy.decide(read, {}) == "deny"
    assert policy.decide(_spec("fetch", "network"), {"path": "a"}) == "deny"
    for odd in ["maybe", False, 0, "", ["allow"]]:
        policy = permissions.PermissionPolicy({"read": "allow"}, [lambda spec, args, o=odd: o])
        assert policy.decide(read, {}) == "deny", odd
    assert permissions.PermissionPolicy({"read": "sure"}).decide(read, {}) == "deny"
