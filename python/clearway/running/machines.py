"""Live runs on several machines: the token that they share, and taking part."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clearway import _core
from clearway.programs import outside
from clearway.scenarios.scenario import Scenario, scenario_of

TOKEN = "CLEARWAY_TOKEN"
"""The environment variable with the token, where none is given."""


def tell(news: str) -> None:
    """Reports what happens before the run on several machines begins."""
    print(news, file=sys.stderr, flush=True)


def the_token(given: str | None) -> str:
    """The token that is given, or that of the environment."""
    token = given if given is not None else os.environ.get(TOKEN)
    if token is None:
        raise ValueError(f"several machines share a token: give one, or set {TOKEN}; `openssl rand -hex 32` makes one")
    return token


@dataclass(frozen=True)
class Joined:
    """The part that a machine has taken in a run of several machines."""

    machine: int
    """Its number; the first machine, which writes the result, is 0."""
    machines: int
    """Machines in all."""
    nodes: int
    """Hosts and switches that lived on it."""
    end_ps: int
    """When the run ended, by the network's time."""


def join(
    address: str,
    *,
    token: str | None = None,
    scenario: Scenario | str | Path | None = None,
    tell: Callable[[str], object] = tell,
) -> Joined:
    """Takes part in a live run of several machines: the first one, `cw.live(..., machines=2)`, listens at `address`.

    `token`: the secret that all machines of the run share, by default that of the environment variable CLEARWAY_TOKEN.
    A `scenario`, if given, must be the same as the first machine's; by default it comes from there. `tell` is called
    with messages about what happens before the run. Ctrl-C ends the part of this machine; for the others, its nodes
    have failed.
    """
    read = outside.native(scenario_of(scenario)._core, "live runs") if scenario is not None else None
    return Joined(*_core.live_join(address, the_token(token), tell, read))
