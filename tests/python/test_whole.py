"""Files and folders are there whole or not at all, whatever ends their writer, and what it leaves is found."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import clearway as cw
import pytest
from called import call
from clearway.files import whole
from clearway.files.places import held

# Saves the second result over the first, and is killed before the Nth thing that it does with a file.
KILLED = """
import os, signal, sys
import clearway as cw
from clearway import _core
from clearway.files import whole
new, place, after = cw.load(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if sys.argv[4] == "in two":
    _core.exchange = lambda one, other: 22
happened, told = 0, False
WATCHED = ("open", "os.", "shutil.", "clearway.")
def hook(event, arguments):
    global happened
    if told and event.startswith(WATCHED):
        happened += 1
        if happened == after:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
told = True
new.save(place)
told = False
print(happened)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two results that differ."""
    place, tiny = tmp_path_factory.mktemp("results"), cw.Scenario.load("examples/tiny.toml")
    for name, seed in (("old", 1), ("new", 2)):
        cw.run(tiny.with_({"name": name}, seed=seed), progress=False).save(place / name)
    return place


def killed(results: Path, place: Path, after: int, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", KILLED, str(results / "new"), str(place), str(after), how]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def there(place: Path) -> str:
    """Which of the two results is in a place, whole; empty if none is."""
    return cw.load(place).name if place.exists() else ""


@pytest.mark.parametrize("how", ["at once", "in two"])
@pytest.mark.slow
def test_a_save_that_is_killed_at_any_call_leaves_one_of_the_two_whole(results: Path, tmp_path: Path, how: str) -> None:
    done = killed(results, cw.load(results / "old").save(tmp_path / "r"), 0, how)
    assert done.returncode == 0 and there(tmp_path / "r") == "new", done.stderr
    _killed_at(results, tmp_path, how, range(1, int(done.stdout) + 1))


def test_a_save_that_is_killed_leaves_one_of_the_two_whole(results: Path, tmp_path: Path) -> None:
    count = int(killed(results, cw.load(results / "old").save(tmp_path / "r"), 0, "at once").stdout)
    # The last ones are those after everything is written: the exchange, and the removal of the old.
    _killed_at(results, tmp_path, "at once", [1, 2, 5, *range(count - 14, count + 1, 2)])


def _killed_at(results: Path, tmp_path: Path, how: str, points: Any) -> None:
    seen = set()
    for after in points:
        place = cw.load(results / "old").save(tmp_path / f"r{after}" / "r")
        done = killed(results, place, after, how)
        assert done.returncode == -signal.SIGKILL, (after, done.stderr)
        found, left = there(place), whole.leftovers(place.parent)
        assert found in ("old", "new") or (how == "in two" and left), after
        # The next command says so, and another removes it, or puts back what was there.
        said = call("explain", place, "--flow", "0").err
        assert all(f"note: {path} " in said and "clearway clean" in said for path in left), (after, said)
        call("clean", place.parent)
        assert os.listdir(place.parent) == ["r"] and there(place) == (found or "old"), after
        seen.add((found, len(left)))
    assert {found for found, _ in seen} >= {"old", "new"} and any(count for _, count in seen)


def test_what_is_being_written_or_is_not_ours_is_not_cleaned(tmp_path: Path) -> None:
    mine = tmp_path / ".mine.clearway"
    mine.write_text("mine")
    deep = tmp_path / ".r.0123abcd.clearway"
    (deep / "thesis").mkdir(parents=True)
    link = tmp_path / ".l.0123abcd.clearway"
    link.symlink_to(tmp_path / "elsewhere")

    def look(part: Path) -> None:
        assert part.parent == tmp_path and part not in whole.leftovers(tmp_path)
        assert any(str(part) in said and "a process writes it" in said for said in whole.clean(tmp_path))
        (part / "a").write_text("a")

    whole.replace_folder(tmp_path / "r", look, lambda there: None)
    assert sorted(os.listdir(tmp_path)) == sorted([mine.name, deep.name, link.name, "r"])
    assert (tmp_path / "r" / "a").read_text() == "a"


def test_locks_and_files_of_killed_commands_are_cleaned(tmp_path: Path) -> None:
    """But not that of a command that goes on."""
    (tmp_path / ".gone.lock").write_text("process 1 on here\n")
    (tmp_path / ".other.lock").write_text("{}")
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / ".part.parquet.0123abcd.clearway").write_text("half")
    with held(tmp_path / "live"):
        said = call("clean", tmp_path).out
        assert ".gone.lock: removed" in said and ".part.parquet.0123abcd.clearway: removed" in said
        assert sorted(os.listdir(tmp_path)) == [".live.lock", ".other.lock", "dataset"]
    assert call("clean", tmp_path).out == "nothing was left behind\n"
    assert call("clean", tmp_path / "no").code == 2


CALLS = [
    *("os.mkdir", "os.open", "os.chmod", "os.fsync", "os.rename", "pathlib.Path.write_text"),
    *("clearway._core.exchange", "pyarrow.parquet.write_table"),
]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_the_system_names_the_place_and_costs_nothing(
    results: Path, tmp_path: Path, name: str, number: int
) -> None:
    place, new = cw.load(results / "old").save(tmp_path / "r"), cw.load(results / "new")

    def fails(*given: Any, **named: Any) -> Any:
        if name == "clearway._core.exchange":
            return number
        raise OSError(number, os.strerror(number), "/somewhere/else")

    with mock.patch(name, fails):
        if name == "os.rename":
            # Without a folder there, nothing is exchanged.
            place = tmp_path / "other"
        with pytest.raises(OSError, match=r".") as told:
            new.save(place)
    assert (told.value.errno, told.value.filename) == (number, str(place))
    assert there(tmp_path / "r") == "old" and os.listdir(tmp_path) == ["r"]


def test_the_command_says_what_the_system_said(tmp_path: Path) -> None:
    def fails(*given: Any, **named: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere/else")

    with mock.patch("pyarrow.parquet.write_table", fails):
        done = call("run", Path("examples/tiny.toml").resolve(), "--out", tmp_path / "r")
    [said] = [line for line in done.err.splitlines() if line.startswith("error")]
    assert said == f"error: {tmp_path / 'r'}: No space left on device (the disk is full)" and done.code == 2
    assert os.listdir(tmp_path) == []


def test_a_file_that_came_meanwhile_is_not_lost(results: Path, tmp_path: Path) -> None:
    """The folder is looked at once more when no process can put anything into it."""
    place, new = cw.load(results / "old").save(tmp_path / "r"), cw.load(results / "new")
    real = whole.exchange

    def exchange(one: Path, other: Path) -> None:
        if not (other / "thesis.txt").exists() and not (one / "thesis.txt").exists():
            (other / "thesis.txt").write_text("years of work")
        real(one, other)

    with mock.patch.object(whole, "exchange", exchange), pytest.raises(FileExistsError, match=r"thesis\.txt"):
        new.save(place)
    assert (place / "thesis.txt").read_text() == "years of work" and os.listdir(tmp_path) == ["r"]
    (place / "thesis.txt").unlink()
    assert there(place) == "old"


@pytest.mark.parametrize("how", ["at once", "in two"])
def test_of_two_that_save_at_once_one_wins_and_neither_is_half(results: Path, tmp_path: Path, how: str) -> None:
    program = (
        "import sys, clearway as cw; from clearway import _core\n"
        "if sys.argv[3] == 'in two': _core.exchange = lambda one, other: 22\n"
        "result = cw.load(sys.argv[1])\n"
        "sys.stdin.read()\n"
        "for _ in range(15): result.save(sys.argv[2])"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(results / name), str(tmp_path / "r"), how],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("old", "new")
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.close()
        writer.stdin = None
    for writer in writers:
        _, err = writer.communicate(timeout=60)
        assert writer.returncode == 0, err
    assert there(tmp_path / "r") in ("old", "new") and os.listdir(tmp_path) == ["r"]


def test_a_part_is_locked_until_it_is_in_its_place(tmp_path: Path) -> None:
    def locked(check: Callable[[int], None]) -> Callable[[Path], None]:
        def write(part: Path) -> None:
            handle = os.open(part, os.O_RDONLY)
            try:
                check(handle)
            finally:
                os.close(handle)

        return write

    def is_locked(handle: int) -> None:
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)

    whole.replace(tmp_path / "file", locked(is_locked))
    whole.replace_folder(tmp_path / "folder", locked(is_locked), lambda there: None)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
