"""Whether this tree is slower than a commit: `make bench-against REV=HEAD`, or `python tests/bench_against.py REV`.

Builds the bench of both, the commit's in a worktree under `target/bench-against`, and runs them in pairs, one after the
other in alternating order, so that both see the same neighbours on a shared machine. Exit status 1 if on any line the
median of the pairs is more than 3% slower and this is no noise: more pairs are slower than chance would have it.

Both run the scenarios of this tree: its bench is laid over the commit's, whose own may lack them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BENCH = Path("crates", "sim", "examples", "bench")
MANIFEST = Path("crates", "sim", "Cargo.toml")
BUILD = ["cargo", "build", "--release", "-p", "clearway-sim", "--example", "bench"]
# The lines compared by default: small and large, Poisson and bursts, with and without flow control.
LINES = ["leaf-spine/dcpim", "leaf-spine/dctcp", "poisson-1024/dcpim", "permutation-1024/ndp", "storm/pfc"]
SLOWER = 0.03
# A line is slower if chance alone would make as many of its pairs slower this seldom.
CHANCE = 0.05


class Failure(Exception):
    """The reason that keeps a comparison from being made."""


@dataclass(frozen=True)
class Pairs:
    """A line's speeds in this tree over those at the commit, a pair each."""

    name: str
    ratios: list[float]
    same_history: bool

    @property
    def median(self) -> float:
        return median(self.ratios)

    @property
    def is_slower(self) -> bool:
        """More than 3% slower in the median, and slower in more pairs than a fair coin would say."""
        count, slower = len(self.ratios), sum(ratio < 1 for ratio in self.ratios)
        chance = sum(math.comb(count, many) for many in range(slower, count + 1)) / 2**count
        return self.median < 1 - SLOWER and chance < CHANCE

    def __str__(self) -> str:
        line = f"{self.name:<40} {self.median:6.3f} ({min(self.ratios):.3f} - {max(self.ratios):.3f})"
        notes = ["slower"] * self.is_slower + ["another history"] * (not self.same_history)
        return f"{line}  {', '.join(notes)}".rstrip()


def compare(here: Path, there: Path, name: str, pairs: int, options: list[str]) -> Pairs:
    """Runs a line in both programs, `pairs` times."""
    ratios, same = [], True
    for number in range(pairs):
        order = [here, there] if number % 2 == 0 else [there, here]
        found = {program: figures(program, name, options) for program in order}
        speeds = [found[program]["hops"] / found[program]["cpu_s"] for program in (here, there)]
        ratios.append(speeds[0] / speeds[1])
        same &= found[here]["digest"] == found[there]["digest"]
    return Pairs(name, ratios, same)


def figures(program: Path, name: str, options: list[str]) -> dict[str, Any]:
    done = subprocess.run([program, "--one", name, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{program} --one {name}: {done.stderr.strip()}")
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def target() -> Path:
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def build_here() -> Path:
    """The bench of this tree, put aside, so that it stays what was compared."""
    run([*BUILD, "--locked"], ROOT, target())
    return put_aside(target(), "here")


def build_there(rev: str) -> Path:
    """The bench of this tree on the code of a commit."""
    commit = said("rev-parse", "--verify", "--short=12", f"{rev}^{{commit}}")
    tree = target() / "bench-against" / commit
    if not (tree / "Cargo.toml").is_file():
        said("worktree", "prune")
        said("worktree", "add", "--force", "--detach", str(tree), commit)
    said("-C", str(tree), "checkout", "--quiet", "--force", commit)
    shutil.rmtree(tree / BENCH, ignore_errors=True)
    shutil.copytree(ROOT / BENCH, tree / BENCH)
    manifest = tree / MANIFEST
    manifest.write_text(with_dependencies(manifest.read_text(), (ROOT / MANIFEST).read_text()))
    try:
        # One folder for all commits: what they have in common is built once.
        run(BUILD, tree, target() / "bench-against" / "build")
    except Failure as failure:
        raise Failure(f"the bench of this tree does not build on {rev}: {failure}") from None
    return put_aside(target() / "bench-against" / "build", commit)


def with_dependencies(theirs: str, ours: str) -> str:
    """A manifest with what the bench of another needs."""
    section = re.compile(r"^\[dev-dependencies\]\n(?:[^\[\n].*\n)*", re.MULTILINE)
    found = section.search(ours)
    assert found is not None, "the bench has dependencies"
    return section.sub(lambda _: found[0], theirs)


def put_aside(built: Path, name: str) -> Path:
    aside = target() / "bench-against" / "programs" / f"bench-{name}"
    aside.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(built / "release" / "examples" / "bench", aside)
    return aside


def run(command: list[str], at: Path, into: Path) -> None:
    if subprocess.run(command, cwd=at, env=os.environ | {"CARGO_TARGET_DIR": str(into)}, check=False).returncode:
        raise Failure(f"{' '.join(command)} failed in {at}")


def said(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("rev", help="the commit to compare with")
    parser.add_argument("names", nargs="*", default=LINES, help="lines of the bench; --list of it prints all")
    parser.add_argument("--pairs", type=int, default=7, help="runs of each program a line")
    parser.add_argument("--threads", type=int, help="threads of each run")
    parser.add_argument("--full", action="store_true", help="scenarios in full length, not the short ones of --quick")
    parser.add_argument("--here", type=Path, help="a bench that is built already, for this tree's")
    parser.add_argument("--there", type=Path, help="a bench that is built already, for the commit's")
    read = parser.parse_args(words)
    options = [] if read.full else ["--quick"]
    options += ["--threads", str(read.threads)] if read.threads else []
    try:
        if read.pairs < 1:
            raise Failure("--pairs: at least 1")
        here, there = read.here or build_here(), read.there or build_there(read.rev)
        print(f"{'speed here, ' + read.rev + ' is 1':<40} median (range of {read.pairs} pairs)")
        slower = False
        for name in read.names:
            pairs = compare(here, there, name, read.pairs, options)
            slower |= pairs.is_slower
            print(pairs, flush=True)
    except Failure as failure:
        print(f"bench-against: {failure}", file=sys.stderr)
        return 2
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
