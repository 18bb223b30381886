"""Grades that hold anything at all, for the tests of every format."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from course.grades import Batch, Count, Grade, LabGrade, Status
from course.results import CaseError, FirstRed

# Grades are large to make: fewer of them, and no limit on a busy machine.
quickly = settings(max_examples=40, deadline=None)
whole = b"".join  # a document of its parts

HOSTILE = [
    "\x00", "\x1b[2J\x1b[32m8 passed", "\x1b]0;title\x07", "\r8 passed", "\u202e\u2066", "\u2028",
    "\ud800", "\udfff\ud800", "\ufffe", "\uffff", "\U0001ffff", "\x85", "\x0b\x0c", "\ufeff",
    "]]>", "<![CDATA[", "<!--", "-->", "<?xml?>", "&", "&amp;", "&#0;", "&bogus;",
    "</failure></testcase>", "<testcase name='x'/>", "</pre></td></tr></table>", "</title>",
    "<script>document.title='owned'</script>", "<img src=x onerror=document.title='owned'>",
    "<a href='javascript:alert(1)'>", "<meta http-equiv=refresh content='0;url=//example.com'>",
    "{{ 7*7 }}", "{% raw %}", "<style>*{display:none}</style>", "\"", "'", "\"'><svg/onload=1>",
    "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", ";=1+1", "; \"=1+1", "\"=1+1", " =1+1",
    "＝1+1", "=HYPERLINK(\"http://example.com\";\"x\")", "=cmd|' /C calc'!A0", ",", ";", "a\n=1+1",
    "::error::owned", "::stop-commands::x", "::set-output name=a::b", "\n::error::owned",
    "\n::endgroup::", "%0A::error::owned", "%25", "##[error]owned", "##[endgroup]", "::add-mask::a",
    "```", "````\n# owned", "~~~", "`", "``", "|", "\\|", "\\", "\n\n# owned\n", "\n- x\n1. x\n> x",
    "[a](http://example.com)", "![a](http://example.com/x.png)", "<http://example.com>",
    "www.example.com", "https://example.com", "a@example.com", "@everyone", "#1", ":smile:",
    "$x$", "$`x`$", "**a**", "_a_", "~~a~~", "[^1]", "\n---\n", "| a |\n|---|", "    indented",
    "尚未实现", "é", "👩‍🏫", " ", "\n", "\t", "  two  ", "calm words",
]

anything = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=4).map("".join),
    st.text(st.characters(exclude_categories=()), max_size=20),
)
points = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 1 / 3, 0.1])
counts = st.builds(lambda good, more: Count(good, good + more),
                   st.integers(0, 3), st.integers(0, 3))
labs = st.builds(LabGrade, anything, anything, st.booleans(), points, counts, counts,
                 st.lists(anything, max_size=2).map(tuple))
errors = st.builds(CaseError, anything, anything, st.none() | anything,
                   st.none() | st.integers(1, 9999), st.none() | anything)


@st.composite
def grades(draw: st.DrawFn) -> Grade:
    """One grade; its first red is often of one of its labs."""
    mine = tuple(draw(st.lists(labs, max_size=3)))
    lab_ids = st.sampled_from([lab.id for lab in mine]) if mine else anything
    red = st.builds(FirstRed, lab_ids | anything, anything, errors, anything, anything)
    return Grade(
        draw(anything), draw(st.sampled_from(Status)), mine, draw(st.just("") | anything),
        draw(st.none() | red), tuple(draw(st.lists(anything, max_size=2))),
        draw(st.floats(0, 1e5)))


def batches(most: int = 3, least: int = 0) -> st.SearchStrategy[Batch]:
    """Batches of so many grades, by probes, by public tests, or by something else."""
    by = st.sampled_from(["probes", "public"]) | anything
    sandbox = st.sampled_from(["bubblewrap", "none"]) | anything
    return st.builds(Batch, anything, anything, anything, sandbox, by,
                     st.lists(grades(), min_size=least, max_size=most))


def everything_hostile() -> Batch:
    """One batch with each hostile text in each field, for parsers that are slow to start."""
    red = (FirstRed(text, text, CaseError(text, text, text, 3, text), text, text)
           for text in HOSTILE)
    made = [Grade(text, Status.FAILED,
                  (LabGrade(text, text, False, 2.0, Count(1, 2), Count(0, 2), (text,)),),
                  text, first_red, (text,), 1.5)
            for text, first_red in zip(HOSTILE, red, strict=True)]
    joined = "".join(HOSTILE)
    return Batch(joined, joined, joined, joined, "probes", made)


def ordinary() -> Batch:
    """Two submissions as a class has them: one passes, one has a red lab."""
    good = (LabGrade("02.1", "top words", True, 2.0, Count(2, 2), Count(3, 3)),
            LabGrade("02.2", "lines", True, 1.0, Count(1, 1), Count(2, 2)))
    error = CaseError("AssertionError", "assert [] == ['a']\nmore", "src/tally/report.py", 12)
    red = FirstRed("02.2", "tests/test_02_2_lines.py::test_lines", error, "the lines", "Report.on")
    bad = (good[0], LabGrade("02.2", "lines", False, 1.0, Count(0, 1), Count(1, 2),
                             ("lines keep their order",)))
    return Batch("02", "reports", "abc123", "bubblewrap", "probes", [
        Grade("amy", Status.PASSED, good, duration_s=0.51),
        Grade("ben", Status.FAILED, bad, first_red=red, notes=("notes.txt was passed over",))])
