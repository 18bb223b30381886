from tally import report


def test_each_word_has_a_line() -> None:
    """A line is the word and its number."""
    assert report.report_on("b a b").lines() == ["b 2", "a 1"]
