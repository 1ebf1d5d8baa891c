"""The errors that Clearway raises."""

from __future__ import annotations

import re


class Error(Exception):
    """The base of all errors of Clearway's own: of scenarios, results, and messages of programs. Wrong arguments are
    `ValueError` and `TypeError`, as everywhere in Python.

    >>> import clearway as cw
    >>> try:
    ...     cw.load("out/nothing-is-here")
    ... except cw.Error as error:
    ...     print(type(error).__name__)
    ResultError
    """


class ResultError(Error, ValueError):
    """A folder is no result of a run, or is damaged: which file, which column, and what would be right."""


class ScenarioError(Error, ValueError):
    """The error of a scenario that can't run: the place, the key, what is wrong and what would be right.

    >>> import clearway as cw
    >>> cw.Scenario.from_toml("seeed = 1")
    Traceback (most recent call last):
    clearway.errors.ScenarioError: scenario:1: seeed: "seeed" is not a known key here; did you mean "seed"? ...
    """

    def __init__(self, file: str, line: int | None, key: str, message: str) -> None:
        place = f"{file}:{line}" if line is not None else file
        super().__init__(": ".join(part for part in (place, key, message) if part))
        self.file = file
        self.line = line
        self.key = key
        self.message = message

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[str, int | None, str, str]]:
        return ScenarioError, (self.file, self.line, self.key, self.message)


class PapersMissing(Error, FileNotFoundError):
    """Data of a paper's authors, which a figure is compared with, is not installed."""


class Undelivered(Error, ConnectionError):
    """A program's message will not be delivered: its transport has given it up, or no socket listens at its
    destination. The error says which, and what to do."""


class Rejected(Undelivered):
    """A transport with admission control has no room for a message of a program: Harmony's `reject`."""


class MazeOver(Error, ConnectionError):
    """The socket is closed, or the run that it belonged to is over."""


CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters of terminals, and those that turn the direction of text."""


def plain(text: str) -> str:
    r"""A text without what a terminal obeys.

    >>> plain("\x1b[31mred").endswith("[31mred")
    True
    """
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
