"""The class that a congestion control in Python derives from."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import math
import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

from clearway import _core

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clearway._core import AckEvent, CongestionEvent, SentEvent, StartEvent


class Control(_core.Answer):
    """Your own congestion control: TCP whose window and rate this class decides.

    Your class overrides the methods for events that it needs, and sets `window_bytes`, `rate_bps` and the timer. The
    values hold until it sets others. Each flow has an object of its own, made with the same arguments as the one that
    you give to `Scenario.with_`. An exception ends its flow, with the traceback as the reason; the run goes on. The
    outcome must depend only on the arguments of these methods: use no clock, no random numbers except from
    `start.seed`, and no data that objects share. See `docs/own-protocol.md`.

    >>> import clearway as cw
    >>> class Halves(cw.Control):
    ...     def __init__(self, step: int = 1) -> None:
    ...         self.step = step
    ...     def on_start(self, start):
    ...         self.mss = start.mss_bytes
    ...     def on_ack(self, acks):
    ...         self.window_bytes += self.step * self.mss * acks.growing_bytes // self.window_bytes
    ...     def on_loss(self, loss):
    ...         self.window_bytes = self.mss if loss.timeout else max(loss.flight_bytes // 2, 2 * self.mss)
    >>> s = cw.Scenario.load("examples/tiny.toml").with_(transport=Halves(step=2))
    >>> s.to_dict()["transport"]["custom"]["settings"]
    {'step': 2.0}
    >>> r = cw.run(s)
    >>> r.ok, r.unfinished
    (True, 0)
    """

    ecn: ClassVar[str] = "off"
    """How it uses marks: "off", "classic" (like losses), or "proportional" (their share counts)."""
    threshold: ClassVar[str | None] = None
    """Length of the queue from which on switches mark, such as "30KB"; by default as for DCTCP."""
    rates: ClassVar[bool] = False
    """Whether acknowledgements bring samples of the delivery rate."""
    tcp: ClassVar[Mapping[str, Any]] = {}
    """Settings of the TCP below it: keys of `transport.custom.tcp`, such as {"rto_min": "5ms"}."""

    def on_start(self, start: StartEvent) -> None:
        """The flow begins, with the initial window already set."""

    def on_send(self, sent: SentEvent) -> None:
        """A packet has left."""

    def on_ack(self, acks: AckEvent) -> None:
        """Acknowledgements have come: one, or several after `quiet_bytes` and `quiet_until` were set."""

    def on_loss(self, loss: CongestionEvent) -> None:
        """Data were lost, at most once a window of data except for timeouts."""

    def on_mark(self, mark: CongestionEvent) -> None:
        """Data were marked, at most once a window of data."""

    def on_timer(self, now_ps: int) -> None:
        """The time of `set_timer` has come."""


def table(control: Control) -> tuple[dict[str, Any], tuple[str, Control, str]]:
    """The scenario's entry for a control, and the parts that the core needs to run it: digest, object, settings."""
    cls = type(control)
    if cls is Control:
        raise TypeError("Control does nothing by itself: give an object of a class of yours that is derived from it")
    named = _arguments(cls, control)
    settings = {name: value if _is_plain(value) else repr(value) for name, value in named.items()}
    settings = {
        name: float(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in settings.items()
    }
    said = json.dumps(settings, sort_keys=True)
    digest = hashlib.blake2b(f"{cls.__qualname__}\0{_source(cls)}\0{said}".encode(), digest_size=16).hexdigest()
    keys: dict[str, Any] = {"python": f"{cls.__module__}.{cls.__qualname__}", "digest": digest, "ecn": cls.ecn}
    if settings:
        keys["settings"] = settings
    if cls.threshold is not None:
        keys["threshold"] = cls.threshold
    if cls.rates:
        keys["rates"] = True
    if cls.tcp:
        keys["tcp"] = dict(cls.tcp)
    return {"custom": keys}, (digest, control, said)


def _is_plain(value: Any) -> bool:
    """Whether a scenario can say it: what is not a finite number, a text or a truth value is written as it prints."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.isfinite(value) and float(value) == value
    return isinstance(value, bool | str)


def _arguments(cls: type[Control], control: Control) -> dict[str, Any]:
    """The arguments that the object was made with, by name, with the defaults of those that were left out."""
    given, named = control._arguments, control._named or {}
    if cls.__init__ is object.__init__:
        return {}
    bound = inspect.signature(cls).bind(*given, **named)
    bound.apply_defaults()
    return dict(bound.arguments)


def _source(cls: type[Control]) -> str:
    """The behaviour of a class: its source, and that of the classes, functions, modules and constants that it uses, as
    far as
    they are not of an installed package.
    """
    parts: list[str] = []
    seen: set[int] = set()
    left: list[Any] = list(cls.__mro__[: cls.__mro__.index(Control)])[::-1]
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        parts.append(_text(value))
        for function in _functions(value):
            for name, used in _used(function):
                if isinstance(used, _PLAIN):
                    parts.append(f"{name} = {used!r}")
                elif _is_own(used):
                    left.append(used)
    return "\0".join(parts)


_PLAIN = (bool, int, float, str, bytes, tuple, list, dict, type(None))


def _is_own(value: Any) -> bool:
    """Whether a class, function or module is of neither Python, Clearway nor an installed package."""
    if not (inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value)):
        return False
    module = value if inspect.ismodule(value) else sys.modules.get(value.__module__)
    of, file = getattr(module, "__name__", "").partition(".")[0], getattr(module, "__file__", None) or ""
    return of not in (*sys.stdlib_module_names, "clearway") and "site-packages" not in file


def _text(value: Any) -> str:
    """The source of a class, function or module. Where no file has it, as in a console of old, its compiled code."""
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):
        return "\0".join(_compiled(function.__code__) for function in _functions(value))


def _compiled(code: CodeType) -> str:
    inner = [_compiled(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return repr((code.co_name, code.co_code, inner, code.co_names))


def _functions(value: Any) -> list[FunctionType]:
    """A function, or those of a class in the order of their names."""
    members = [one for _, one in sorted(vars(value).items())] if inspect.isclass(value) else [value]
    plain = (getattr(one, "__func__", None) or getattr(one, "fget", None) or one for one in members)
    return [one for one in plain if isinstance(one, FunctionType)]


def _used(function: FunctionType) -> list[tuple[str, Any]]:
    """The names that a function uses of its module, and of the functions around it."""
    names: list[str] = []
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names += code.co_names
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
    found = [(name, function.__globals__[name]) for name in dict.fromkeys(names) if name in function.__globals__]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):
            found.append((name, cell.cell_contents))
    return found
