"""A paper as the command knows it: its figures, its pages and the options that they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from clearway.papers import unknown
from clearway.papers.figures import Figures, Shown


@dataclass(frozen=True)
class Options:
    """Options that change a figure's runs. A paper takes some of them; its page has the defaults."""

    scale: float = 1.0
    """A factor on the number of flows, or on the time for which they arrive."""
    seeds: int = 3
    """The number of seeds of results with confidence intervals."""
    only: tuple[str, ...] = ()
    """Runs only these of the other schemes, beside the paper's own."""
    in_turn: bool = False
    """Links serve virtual links in turn, and not in the order of arrival."""
    out: Path | None = None
    """Where runs, tables and pictures go; `out/PAPER` if not given."""

    @property
    def words(self) -> list[str]:
        """The options that are not the default, as words of the command. `--out` is left out: it changes no number."""
        words: list[str] = []
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "out" or value == one.default:
                continue
            name = f"--{one.name.replace('_', '-')}"
            if isinstance(value, bool):
                words.append(name)
            elif isinstance(value, tuple):
                words += [word for each in value for word in (name, each)]
            else:
                words += [name, f"{value:g}"]
        return words

    @classmethod
    def of(cls, words: Sequence[str]) -> Options:
        """The options that `words` says."""
        found: dict[str, Any] = {}
        left = iter(words)
        for word in left:
            name = word.removeprefix("--").replace("-", "_")
            default = getattr(cls, name)
            if isinstance(default, bool):
                found[name] = True
            elif isinstance(default, tuple):
                found[name] = (*found.get(name, ()), next(left))
            else:
                found[name] = type(default)(next(left))
        return cls(**found)


@dataclass(frozen=True)
class Paper:
    """A paper, or another source of numbers to compare with."""

    name: str
    title: str
    figures: Figures
    """The figures by the command's name for each; a function's docstring says what it shows."""
    apply: Callable[[Options, Path], None]
    """Makes the figures run with these options and write into this folder."""
    pages: tuple[str, ...]
    """The pages that show its figures, as paths from the root of the repository."""
    takes: frozenset[str] = frozenset()
    """Names of `Options` that change its figures."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Figures whose results go into a folder of this name inside the paper's folder."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of groups of figures."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """The paper's other figures and tables, and why there is nothing to run: "figure-1", "a drawing"."""

    @property
    def out(self) -> Path:
        """Where runs, tables and pictures go by default."""
        return Path("out") / self.name

    def figure(self, name: str) -> Callable[[], Shown]:
        """A figure by its name; `ValueError` lists the known ones."""
        if name not in self.figures:
            raise ValueError(unknown(name, [*self.figures, *self.groups], f"figure of {self.name}"))
        return self.figures[name]

    def names(self, asked: list[str]) -> list[str]:
        """The names of the requested figures in that order, with groups resolved; all figures if none is named."""
        found = [name for word in asked for name in self.groups.get(word, (word,))]
        for name in found:
            self.figure(name)
        return list(dict.fromkeys(found)) or list(self.figures)

    def use(self, options: Options) -> Path:
        """Sets the options for the next runs; returns the folder for their results."""
        for one in fields(options):
            if one.name != "out" and one.name not in self.takes and getattr(options, one.name) != one.default:
                taken = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(self.takes)) or "none"
                raise ValueError(
                    f"--{one.name.replace('_', '-')} has no effect on {self.name}; its options are {taken}"
                )
        if not options.scale > 0:
            raise ValueError(f"--scale {options.scale:g}: must be above 0")
        if options.seeds < 1:
            raise ValueError(f"--seeds {options.seeds}: must be at least 1")
        out = options.out or self.out
        self.apply(options, out)
        return out / "in-turn" if options.in_turn else out


def title(figure: Callable[[], Shown]) -> str:
    """The description of a figure, in one line."""
    return " ".join((figure.__doc__ or "").split())
