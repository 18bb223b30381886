"""Taking answers out of a module: what goes, what stays, what is refused."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.blank import blank, blank_bodies
from course.errors import CourseBroken
from course.signatures import public_signatures

RED = "Lab 1.1 thing 尚未实现"


def test_signature_and_docstring_stay_and_the_body_is_one_raise() -> None:
    """Annotations, defaults and a signature over several lines are kept as they stand."""
    source = '''\
def f(
    a: int = 1,  # a comment of the signature
    *, b: str,
) -> dict[str, int]:
    """What comes back."""
    # a comment of the answer
    answer = {b: a}

    return answer
    # a comment at the end
'''
    assert blank(source, {"f": RED}) == f'''\
def f(
    a: int = 1,  # a comment of the signature
    *, b: str,
) -> dict[str, int]:
    """What comes back."""
    raise NotImplementedError("{RED}")
'''


def test_what_only_the_answers_used_goes() -> None:
    """Private functions, classes, constants, methods and imports that nothing left reads."""
    source = '''\
import os
import re, sys
from collections import Counter, deque
from typing import Any

_PATTERN = re.compile("x")
LIMIT = 3


class Public:
    """Stays."""

    def hole(self) -> Any:
        return self._helper() + _helper(LIMIT)

    def _helper(self) -> Any:
        return _PATTERN

    def stays(self) -> str:
        return sys.version


# about the helper
@staticmethod
def _helper(n: int) -> Any:
    return _Private(deque([n]))


class _Private:
    def __init__(self, x: Any) -> None:
        self.x = Counter(x)
'''
    assert blank(source, {"Public.hole": RED}) == f'''\
import os
import sys
from typing import Any

LIMIT = 3


class Public:
    """Stays."""

    def hole(self) -> Any:
        raise NotImplementedError("{RED}")

    def stays(self) -> str:
        return sys.version
'''


def test_private_names_that_public_code_reads_stay() -> None:
    """A helper of a public function that is no hole is needed."""
    source = ("def f(x):\n    return _g(x)\n\n\ndef h(x):\n    return x\n\n\n"
              "def _g(x):\n    return x\n")
    assert "_g" in blank(source, {"h": RED})


def test_a_recursive_helper_goes_too() -> None:
    """A private function that only itself reads is not kept alive by that."""
    source = "def f(x):\n    return _g(x)\n\n\ndef _g(x):\n    return _g(x)\n"
    assert "_g" not in blank(source, {"f": RED})


def test_imports_for_type_checking_go_with_their_block() -> None:
    """An `if TYPE_CHECKING` that would be empty goes."""
    source = ("from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import os\n\n\n"
              "def f():\n    x: os.PathLike\n    return x\n")
    assert blank(source, {"f": RED}) == f'def f():\n    raise NotImplementedError("{RED}")\n'


def test_async_functions_and_quotes_in_the_message() -> None:
    """The message is written as Python needs it."""
    made = blank("async def f():\n    return 1\n", {"f": 'say "no" \\ yes'})
    body = ast.parse(made).body[0]
    assert isinstance(body, ast.AsyncFunctionDef) and 'say "no" \\ yes' in ast.literal_eval(
        ast.unparse(body.body[0]).removeprefix("raise NotImplementedError"))


REFUSED = {
    "one line": ("def f(): return 1\n", {"f": RED}),
    "one line, long signature": ("def f(\n    a,\n): return 1\n", {"f": RED}),
    "not there": ("def g():\n    return 1\n", {"f": RED}),
    "twice": ("def f():\n    return 1\n\n\ndef f():\n    return 2\n", {"f": RED}),
    "nested": ("class A:\n    def f(self):\n        return 1\n", {"A.f": RED, "f": RED}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_taken_out_safely_is_refused(name: str) -> None:
    """The error names the hole."""
    source, holes = REFUSED[name]
    with pytest.raises(CourseBroken, match="hole"):
        blank(source, holes)


def test_blank_bodies_leaves_helpers_alone() -> None:
    """Resetting one lab must not take what the learner wrote beside it."""
    source = "def f(x):\n    return _g(x)\n\n\ndef _g(x):\n    return x\n"
    assert "_g" in blank_bodies(source, {"f": RED})


BODIES = st.lists(st.sampled_from([
    "x = 1", "if x:\n        y = [\n            1,\n        ]", "# remark", "",
    "text = '''a\nb\n'''",
    "for _ in range(3):\n        pass\n    # after",
    "return {\n        'a': 1,\n    }",
]), min_size=1, max_size=6)


@given(BODIES, st.booleans(), st.booleans(), st.booleans())
def test_any_body_becomes_one_raise_and_neighbours_stay(
    body: list[str], has_docstring: bool, is_async: bool, is_last: bool
) -> None:
    """Whatever stands in a hole: the rest of the module is the same, the signature too."""
    lines = (['"""Doc."""'] if has_docstring else []) + [*body, "return None"]
    hole = ("async " if is_async else "") + "def hole(a, *, b=2):\n" + "".join(
        f"    {line}\n" for line in lines)
    before, after = "X = 1\n\n\ndef before():\n    return 2\n\n\n", "" if is_last else (
        "\n\ndef after():\n    return 3\n")
    made = blank(before + hole + after, {"hole": RED})
    assert public_signatures(made) == public_signatures(before + hole + after)
    tree = {node.name: node for node in ast.parse(made).body if hasattr(node, "name")}
    found = tree["hole"]
    assert isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)
    statements = found.body
    assert len(statements) == 1 + has_docstring
    assert ast.unparse(statements[-1]) == f"raise NotImplementedError({RED!r})"
    assert made.startswith(before) and made.endswith(after or f'("{RED}")\n')
