"""Salted scenarios of chapter 02: reports on texts that nobody has seen before."""


def text_of(salt, count):
    words = [word for word in salt.words(count) for _ in range(salt.number(1, 4))]
    return " ".join(salt.shuffled(words))


def probe_02_1_order(salt):
    """Frequent words come first, equal ones by alphabet."""
    from tally.report import report_on

    report = report_on(text_of(salt, 8))
    return [salt.plain(report.top(most)) for most in (0, 1, 3, 8, 99)]


def probe_02_1_refusal(salt):
    """A text without words is refused with ValueError, others are not."""
    from tally.report import report_on

    texts = salt.shuffled(["", "123", " -- ", salt.word(), text_of(salt, 3)])
    seen = []
    for text in texts:
        try:
            seen.append(salt.plain(report_on(text).top(9)))
        except ValueError:
            seen.append("ValueError")
    return seen


def probe_02_2_lines(salt):
    """A line is the word and its number, in the order of top."""
    from tally.report import report_on

    return salt.plain(report_on(text_of(salt, 7)).lines())


def probe_02_3_listeners(salt):
    """Each listener hears each line once, in order."""
    from tally.report import report_on

    report = report_on(text_of(salt, 5))
    heard = [[] for _ in range(salt.number(2, 4))]
    report.listeners.extend(one.append for one in heard)
    lines = report.lines()
    return salt.plain({"lines": lines, "heard": heard})


def probe_02_3_later(salt):
    """A listener that comes later hears only what comes later."""
    from tally.report import report_on

    report = report_on(text_of(salt, 4))
    report.lines()
    heard = []
    report.listeners.append(heard.append)
    report.lines()
    return salt.plain(heard)
