"""Salted scenarios of chapter 01: words that nobody has seen before, counted."""


def probe_01_1_numbers(salt):
    """Every word is counted."""
    from tally.counter import count_words

    words = salt.words(5)
    text = [word for word in words for _ in range(salt.number(1, 9))]
    return salt.plain(count_words(" ".join(salt.shuffled(text))))


def probe_01_1_case(salt):
    """Upper and lower case are one word."""
    from tally.counter import count_words

    word = salt.word()
    forms = [word, word.upper(), word.title(), salt.word()]
    return salt.plain(count_words("\n".join(salt.shuffled(forms))))


def probe_01_1_borders(salt):
    """What is no letter ends a word."""
    from tally.counter import count_words

    words = salt.words(6)
    border = salt.choice(["-", "7", "_", " ,. ", "\t"])
    return salt.plain([count_words(border.join(words)), count_words(border), count_words("")])
