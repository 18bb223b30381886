from tally import report


def test_frequent_words_come_first() -> None:
    """The order is by number, then by alphabet."""
    assert report.report_on("b a c b").top(3) == ["b", "a", "c"]


def test_a_text_without_words_is_refused() -> None:
    """No words, no report."""
    refused = False
    try:
        report.report_on("123")
    except ValueError:
        refused = True
    assert refused
