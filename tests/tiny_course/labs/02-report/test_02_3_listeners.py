from tally import report


def test_listeners_hear_every_line() -> None:
    """Each line is heard once, in order."""
    heard: list[str] = []
    made = report.report_on("b a b")
    made.listeners.append(heard.append)
    lines = made.lines()
    assert heard == lines, "Lab 02.3 listeners 尚未实现"
