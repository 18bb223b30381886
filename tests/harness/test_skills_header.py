"""read_header: each limit from both sides, exact fences, and nothing that hides from a reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from harness import skills
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Header = dict[str, str]
GOOD: Header = {"name": "output-check", "description": "d"}

NO_FENCE = "技能缺少frontmatter。"
BAD_HEADER = "技能头部无效或过长。"
NO_END = "技能头部未结束。"
BAD_FIELD = "只支持name/description两个单行字段。"
BAD_VALUE = "技能名称或描述无效。"


@pytest.fixture
def read(tmp_path: Path) -> Callable[[bytes], object]:
    """The header of a file with these bytes, or the text of its ValueError."""
    path = tmp_path / "SKILL.md"

    def read(raw: bytes) -> object:
        path.write_bytes(raw)
        try:
            return skills.read_header(path)
        except ValueError as error:
            assert type(error) is ValueError
            return str(error)

    return read


Read = Callable[[bytes], object]


def _file(description: str | bytes = b"d", name: str = "output-check") -> bytes:
    text = description.encode() if isinstance(description, str) else description
    return b"---\nname: " + name.encode() + b"\ndescription: " + text + b"\n---\nBODY"


@pytest.mark.parametrize(
    "raw",
    [
        b"---\nname: output-check\ndescription: d\n---\nBODY",
        b"---\ndescription: d\nname: output-check\n---\n",
        b"---\nname: output-check\ndescription: d\n---",
        b"---\r\nname: output-check\r\ndescription: d\r\n---\r\nBODY",
        b"\xef\xbb\xbf---\nname: output-check\ndescription: d\n---\n",
        b"\xef\xbb\xbf---\r\nname: output-check\r\ndescription: d\r\n---\r\n",
        b"---\nname:output-check \t\n  description:\td\n---\n",
        b"---\nname: output-check\ndescription: d\n---\n---\nname: other\n---\n\xff\xfe",
    ],
)
def test_same_header_in_every_accepted_dress(read: Read, raw: bytes) -> None:
    """Order, CRLF, one BOM, an end without newline and a wild body all give the same header."""
    assert read(raw) == GOOD


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", NO_FENCE),
        ("没有头部".encode(), NO_FENCE),
        (b"\xff", NO_FENCE),
        (b"\n---\nname: a\ndescription: d\n---\n", NO_FENCE),
        (b" ---\nname: a\ndescription: d\n---\n", NO_FENCE),
        (b"--- \nname: a\ndescription: d\n---\n", NO_FENCE),
        (b"----\nname: a\ndescription: d\n---\n", NO_FENCE),
        (b"---yaml\nname: a\ndescription: d\n---\n", NO_FENCE),
        (b"---\rname: a\rdescription: d\r---\r", NO_FENCE),
        (b"\xef\xbb\xbf\xef\xbb\xbf---\nname: a\ndescription: d\n---\n", NO_FENCE),
        (b"---", BAD_HEADER),
        (b"---\n", BAD_HEADER),
        (b"---\nname: a\ndescription: d\n", BAD_HEADER),
        (b"---\nname: a\ndescription: \xff\n---\n", BAD_HEADER),
        (b"---\nname: a\ndescription: d\n----\n---\n", BAD_FIELD),
        (b"---\nname: a\ndescription: d\n --- \n---\n", BAD_FIELD),
        (b"---\nname: a\ndescription: d\n---foo\n---\n", BAD_FIELD),
        (b"---\nname: a\n\ndescription: d\n---\n", BAD_FIELD),
        (b"---\nname: a\n# note\ndescription: d\n---\n", BAD_FIELD),
        (b"---\nname: a\nname: a\ndescription: d\n---\n", BAD_FIELD),
        (b"---\nname: a\nlicense: MIT\n---\n", BAD_FIELD),
        (b"---\nName: a\ndescription: d\n---\n", BAD_FIELD),
        (b"---\nname : a\ndescription: d\n---\n", BAD_FIELD),
        (b"---\nname: a\ndescription:\n---\n", BAD_FIELD),
        ("---\nname: a\ndescription: \u3000\n---\n".encode(), BAD_FIELD),
        (b"---\nname: a\n---\n", BAD_VALUE),
        (b"---\ndescription: d\n---\n", BAD_VALUE),
        (b"---\n---\n", BAD_VALUE),
    ],
)
def test_anything_else_is_refused_with_its_text(read: Read, raw: bytes, message: str) -> None:
    """Fences are exact, fields are these two, once each; the text says which rule was broken."""
    assert read(raw) == message


@pytest.mark.parametrize("value", ['"d"', "'d'", "|", ">", ">-", "| d"])
def test_quotes_and_blocks_are_refused_not_stored(read: Read, value: str) -> None:
    """YAML's quoted and block values are outside the subset; their marks never become the text."""
    assert read(_file(value)) == BAD_FIELD


@pytest.mark.parametrize("value", ["a: b: c", "see --- there", "#1 choice", "yes", "d'oh", "{{x}}"])
def test_plain_text_stays_as_it_is(read: Read, value: str) -> None:
    """A colon, dashes, a hash or a word that YAML would read as true are text here."""
    assert read(_file(value)) == {"name": "output-check", "description": value}


@pytest.mark.parametrize("name", ["a", "a1", "true", "a-b-c", "x" * 64, "n0-1"])
def test_good_names(read: Read, name: str) -> None:
    """Lower case words and digits joined by single hyphens, up to 64 characters."""
    assert read(_file(name=name)) == {"name": name, "description": "d"}


@pytest.mark.parametrize(
    "name", ["12306", "A", "a--b", "-a", "a-", "a_b", "a.b", "a/b", "..", "a b", "é", "技能",
             "x" * 65, "a\u200b", "１"],
)
def test_bad_names(read: Read, name: str) -> None:
    """A number, a capital, a doubled or open hyphen, a path or a 65th character is no name."""
    assert read(_file(name=name)) == BAD_VALUE


@pytest.mark.parametrize(
    "character",
    ["\x00", "\x07", "\x0b", "\x1b", "\x1c", "\x7f", "\x85", "\x9b", "\u00ad", "\u061c", "\u200b",
     "\u200d", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2060", "\u2066",
     "\u2069", "\ufeff", "\U000e0041", "\t", "\r"],
)
def test_invisible_characters_never_reach_the_prompt(read: Read, character: str) -> None:
    """Control, format, direction and separator characters are refused wherever they stand."""
    assert read(_file(f"a{character}b")) == BAD_VALUE
    if character not in "\t\r":
        assert read(_file(f"{character}ab")) == BAD_VALUE
        assert read(_file(f"ab{character}")) == BAD_VALUE


@pytest.mark.parametrize(
    "text", ["全角\u3000空格", "a\u00a0b", "é", "e\u0301", "😀", "العربية", "ก็"]
)
def test_visible_text_of_any_script_is_welcome(read: Read, text: str) -> None:
    """Other scripts, wide spaces and combining marks are no reason to refuse."""
    assert read(_file(text)) == {"name": "output-check", "description": text}


def test_line_has_512_bytes_at_most(read: Read) -> None:
    """512 bytes with the line ending are a line, 513 are not."""
    start = b"description: d"
    for end in (b"\n", b"\r\n"):
        for size, expected in [(512, GOOD), (513, BAD_HEADER)]:
            line = start + b" " * (size - len(start) - len(end)) + end
            assert len(line) == size
            assert read(b"---\nname: output-check\n" + line + b"---\n") == expected


def test_description_has_160_characters_at_most(read: Read) -> None:
    """160 Chinese characters (480 bytes) are a description, 161 are not, and none is not."""
    text = "核" * 160
    assert read(_file(text)) == {"name": "output-check", "description": text}
    assert read(_file(text + "核")) == BAD_VALUE


def test_header_has_32_lines_at_most(read: Read) -> None:
    """The 32nd line may be the closing fence; without it the header has no end.

    Two fields are all the format knows, so a header of 32 lines is within the limits and wrong in
    its fields; which of the two texts comes back shows on which side of the limit it is.
    """
    assert read(b"---\n" + b"x\n" * 31 + b"---\n") == BAD_FIELD
    assert read(b"---\n" + b"x\n" * 32 + b"---\n") == NO_END


def test_header_has_4096_bytes_at_most(read: Read) -> None:
    """The lines after the opening fence have 4,096 bytes together, the closing fence included."""
    lines = b"".join(b"x" * 499 + b"\n" for _ in range(8))
    for opening in (b"---\n", b"\xef\xbb\xbf---\r\n"):
        for closing in (b"---\n", b"---\r\n", b"---"):
            last = 4096 - len(lines) - len(closing)
            fits = opening + lines + b"y" * (last - 1) + b"\n" + closing
            more = opening + lines + b"y" * last + b"\n" + closing
            assert read(fits + (b"" if closing == b"---" else b"BODY")) == BAD_FIELD
            assert read(more) == BAD_HEADER


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=200) | st.lists(
    st.sampled_from([b"---", b"\n", b"\r\n", b"name: ", b"description: ", b"a", b"\xff", b"- ",
                     b"\xef\xbb\xbf", "核".encode(), b" "]), max_size=16).map(b"".join))
def test_any_bytes_give_a_header_or_a_plain_error(read: Read, raw: bytes) -> None:
    """No file content raises anything but a ValueError of ours, and a header keeps its rules."""
    found = read(raw)
    if isinstance(found, dict):
        assert skills.NAME.fullmatch(found["name"])
        assert 1 <= len(found["description"]) <= 160
    else:
        assert found in {NO_FENCE, BAD_HEADER, NO_END, BAD_FIELD, BAD_VALUE}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.from_regex(skills.NAME, fullmatch=True).filter(lambda name: len(name) <= 64),
    description=st.text(
        st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Zl", "Zp", "Cs", "Zs"]),
        min_size=1, max_size=120).filter(lambda text: text[0] not in "\"'|>"),
    body=st.binary(max_size=300),
    end=st.sampled_from([b"\n", b"\r\n"]),
)
def test_what_is_written_is_what_is_read(
    read: Read, name: str, description: str, body: bytes, end: bytes
) -> None:
    """Name and description survive, whatever the line ending and the body."""
    header = f"---\nname: {name}\ndescription: {description}\n---\n".encode()
    assert read(header.replace(b"\n", end) + body) == {"name": name, "description": description}


@pytest.mark.parametrize("size", [0, 1, 8191, 8192, 8193])
def test_read_start_gives_no_byte_more(tmp_path: Path, size: int) -> None:
    """It returns all there is up to the size asked for, never more."""
    path = tmp_path / "a"
    path.write_bytes(b"x" * 8192)
    assert skills.read_start(path, size) == b"x" * min(size, 8192)
