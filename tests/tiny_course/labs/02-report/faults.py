"""Faults of chapter 02."""


def alphabet_only(top):
    """Order by alphabet alone."""

    def faulty(self, most):
        return sorted(self.words)[:most]

    return faulty


def empty_report(report_on):
    """Make an empty report of a text without words."""

    def faulty(text):
        try:
            return report_on(text)
        except ValueError:
            return report_on("none")

    return faulty


def no_numbers(lines):
    """Leave the numbers out of the lines."""

    def faulty(self):
        return [line.split()[0] for line in lines(self)]

    return faulty


def deaf_listeners(lines):
    """Tell no listener."""

    def faulty(self):
        listeners, self.listeners = self.listeners, []
        try:
            return lines(self)
        finally:
            self.listeners = listeners

    return faulty
