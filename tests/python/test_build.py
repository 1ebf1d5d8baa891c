"""Causes that make a clean build take longer than it must."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def features(*of: str) -> dict[str, set[str]]:
    """The features of each dependency, by name and version, as far as cargo may compile it with several."""
    words = ["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p};{f}", *of]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    found: dict[str, set[str]] = {}
    for line in done.stdout.splitlines():
        package, _, enabled = re.sub(r" \(.*?\)", "", line).partition(";")
        found.setdefault(package, set()).add(enabled)
    return found


def test_the_module_shares_what_cargo_test_has_compiled() -> None:
    module = features("--package", "clearway-python", "--edges", "normal,build")
    tests = features("--workspace", "--edges", "normal,build,dev")
    assert len(module) > 50
    other = {package: (module[package], tests[package]) for package in module if module[package] != tests[package]}
    assert other == {}, "compiled twice: name it in crates/python/Cargo.toml with the features that the tests' have"
