"""Every scheme beside what can be derived: the comparisons of `papers/closed_forms.py`, those of a second or so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path("papers").resolve()))

from figures import Held
from laws import setting, transports


def assert_held(held: Held) -> None:
    broken = [check for check, ok in held.checks.items() if not ok]
    assert not broken, broken


@pytest.mark.parametrize("name", setting.names("transport"))
def test_a_transport_alone_and_with_others_takes_what_arithmetic_says(name: str) -> None:
    assert_held(transports.transport(name))
