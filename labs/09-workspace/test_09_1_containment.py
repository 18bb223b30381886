"""Lab 09.1: paths judged as text, then as the disk really has them."""

import os

from pi_course import containment
from pi_course.errors import CourseError


def _code(function, *args, **options):
    """The code that the call fails with, or what it returned."""
    try:
        return function(*args, **options)
    except CourseError as error:
        return error.code


def _tree(folder):
    """A root `skill` with a file, its twin `skill-old` next to it, and a secret outside."""
    root = folder / "skill"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "guide.md").write_text("guide")
    (folder / "skill-old").mkdir()
    (folder / "skill-old" / "guide.md").write_text("old guide")
    (folder / "secret.txt").write_text("secret")
    return root


def test_a_path_that_climbs_out_is_refused(tmp_path):
    """Above the root is PATH_ESCAPE, as any system reads it; a step back inside is folded away."""
    root = _tree(tmp_path)
    climbing = ["..", "../secret.txt", "docs/../../secret.txt", "docs/../..", "..\\secret.txt"]
    for request in [*climbing, "docs\\..\\..\\x", "docs/..\\..\\x", "./../skill-old/guide.md"]:
        assert _code(containment.lexical, root, request) == "PATH_ESCAPE", request
        assert _code(containment.contained, root, request) == "PATH_ESCAPE", request
        assert _code(containment.contained, root, request, must_exist=False) == "PATH_ESCAPE"
    assert containment.lexical(root, "docs/../docs/./guide.md") == root / "docs" / "guide.md"
    assert containment.lexical(root, "no/such/thing") == root / "no" / "such" / "thing"
    assert containment.lexical(root, ".") == root


def test_a_request_is_judged_alike_on_every_system(tmp_path):
    """What is absolute, or another file, on some system is INVALID_PATH on every system."""
    root = _tree(tmp_path)
    absolute = ["/etc/passwd", "//host/share/x", "C:\\x", "C:x", "C:/x", "\\x", "\\\\host\\share"]
    nothing = ["", " ", "docs/guide.md\0", "\0", "\ud800"]
    homes = ["~", "~/x", "~root/x"]
    ambiguous = ["docs\\guide.md", "guide.", "guide ", "docs /x", "CON", "docs/aux.txt", "x:stream"]
    for request in [*absolute, *nothing, *homes, *ambiguous]:
        assert _code(containment.lexical, root, request) == "INVALID_PATH", repr(request)
        assert _code(containment.contained, root, request) == "INVALID_PATH", repr(request)
    for name in [".env", "a b.txt", "console.log", "..data", "数据.md", "a~b", "-x"]:
        assert containment.lexical(root, name) == root / name


def test_a_link_that_leads_out_is_refused(tmp_path):
    """A link to the outside is PATH_ESCAPE, also when the way out only looks like the root."""
    root = _tree(tmp_path)
    (root / "file").symlink_to(tmp_path / "secret.txt")
    (root / "up").symlink_to("..")
    (root / "twin").symlink_to("../skill-old")
    (root / "chain").symlink_to("docs/hop")
    (root / "docs" / "hop").symlink_to("../file")
    for request in ["file", "up", "up/secret.txt", "twin/guide.md", "chain", "up/no-such-file"]:
        assert _code(containment.contained, root, request) == "PATH_ESCAPE", request


def test_a_file_to_be_made_is_judged_by_where_it_would_be(tmp_path):
    """With must_exist=False a missing file is fine, unless a link puts it outside."""
    root = _tree(tmp_path)
    home = root.resolve()
    (root / "dangling").symlink_to(tmp_path / "not-yet.txt")
    (root / "up").symlink_to("..")
    (root / "later").symlink_to("docs/later.md")

    def make(request):
        return _code(containment.contained, root, request, must_exist=False)

    assert make("docs/new.md") == home / "docs" / "new.md"
    assert make("new/folders/too.md") == home / "new" / "folders" / "too.md"
    assert make("docs/guide.md") == home / "docs" / "guide.md"
    assert make("later") == home / "docs" / "later.md"
    assert make("dangling") == "PATH_ESCAPE"
    assert make("up/new.md") == "PATH_ESCAPE"
    assert make("docs/guide.md/below-a-file") == "NOT_FOUND"


def test_the_answer_is_a_real_path_to_something_that_is_there(tmp_path):
    """Links that stay inside are followed to the end; what is not there is NOT_FOUND."""
    root = _tree(tmp_path)
    (root / "alias.md").symlink_to("docs/guide.md")
    (root / "pages").symlink_to(root / "docs")
    (root / "around").symlink_to("around")
    (tmp_path / "root-by-link").symlink_to(root)
    real = root.resolve() / "docs" / "guide.md"
    for request in ["docs/guide.md", "alias.md", "pages/guide.md", "pages/../alias.md"]:
        assert containment.contained(root, request) == real
        assert containment.contained(tmp_path / "root-by-link", request) == real
        assert os.path.realpath(real) == str(containment.contained(root, request))
    assert containment.contained(root, ".") == root.resolve()
    for request in ["nothing.md", "docs/nothing/at/all", "alias.md/x", "around", "around/x"]:
        assert _code(containment.contained, root, request) == "NOT_FOUND", request
    assert _code(containment.contained, tmp_path / "no-root", "x") == "NOT_FOUND"
