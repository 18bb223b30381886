from tally import counter


def test_every_word_is_counted() -> None:
    """Each word stands in the result with its number."""
    assert counter.count_words("a b a") == {"a": 2, "b": 1}


def test_case_does_not_matter() -> None:
    """Upper and lower case are one word."""
    assert counter.count_words("Yes yes YES") == {"yes": 3}
