"""Actions that the kernel refuses a command that reads another person's files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import clearway as cw
import pytest
from clearway import _core
from clearway.cli.main import app
from clearway.cli.sandbox import EXEMPT, NEEDS
from clearway.files import reach, sandbox
from clearway.files.reach import SCENARIO, SWEEP, TRANSPORTS, Kind, kind_of
from clearway.sweeps.file import KEYS

ROOT = Path(__file__).parents[2]
TINY = ROOT / "examples/tiny.toml"


def _held() -> str:
    """The sandbox of this kernel, tried in a process of its own."""
    code = "from clearway import _core; print(_core.close_sandbox(None, [], [], network=False))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()


HELD = _held()
needs_both = pytest.mark.skipif(HELD != "landlock+seccomp", reason=f"this kernel's sandbox: {HELD}")


def inside(code: str, *, out: Path, file: Path = TINY, **needs: object) -> list[str]:
    """The output of a process that closes a sandbox as a command does and then tries each line of code."""
    program = f"""
import os, pathlib, socket, subprocess, sys, threading
from pathlib import Path
from clearway.files import sandbox
sandbox.close(sandbox.Needs(toml=[Path({str(file)!r})], folders=[Path({str(out)!r})], **{needs!r}))
for line in {code.strip().splitlines()!r}:
    try:
        exec(line)
        print("done")
    except OSError as error:
        print(type(error).__name__)
sandbox.done()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def clearway(*arguments: object, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clearway", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, env=os.environ | more)


@needs_both
def test_nothing_outside_of_the_results_is_written(tmp_path: Path) -> None:
    out, beside = tmp_path / "out", tmp_path / "beside"
    beside.mkdir()
    (beside / "precious").write_text("precious")
    (tmp_path / "file").write_text("precious")
    code = f"""
Path({str(out)!r}, "x").write_text("x")
Path({str(out)!r}, "deep").mkdir()
Path(__import__("tempfile").gettempdir(), "x").write_text("x")
Path({str(tmp_path)!r}, "new").write_text("x")
Path({str(tmp_path)!r}, "new").mkdir()
Path({str(tmp_path)!r}, "file").write_text("x")
Path({str(tmp_path)!r}, "file").unlink()
os.truncate({str(tmp_path / "file")!r}, 0)
os.open({str(tmp_path / "file")!r}, os.O_RDONLY | os.O_TRUNC)
os.rename({str(beside)!r}, {str(tmp_path / "moved")!r})
os.rename({str(beside / "precious")!r}, {str(out / "taken")!r})
os.link({str(beside / "precious")!r}, {str(out / "linked")!r})
Path({str(out)!r}, "link").symlink_to({str(tmp_path / "file")!r})
Path({str(out)!r}, "link").write_text("x")
Path("/tmp/clearway-was-here").write_text("x")
Path.home().joinpath("clearway-was-here").write_text("x")
Path("clearway-was-here").write_text("x")
os.chmod({str(tmp_path / "file")!r}, 0o666)
os.chmod({str(tmp_path / "file")!r}, 0o4755)
os.chown({str(tmp_path / "file")!r}, 1, 1)
os.setxattr({str(tmp_path / "file")!r}, "user.x", b"x")
os.chmod({str(out / "x")!r}, 0o644)
"""
    said = inside(code, out=out)
    allowed = (0, 1, 2, 12, 21)
    # A call that is refused by the filter of calls, or across folders, has another error.
    assert [number for number, word in enumerate(said) if word == "done"] == list(allowed), said
    assert (tmp_path / "file").read_text() == "precious" == (beside / "precious").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"out", "beside", "file"}
    assert {path.name for path in out.iterdir()} == {"x", "deep", "link"}


@needs_both
def test_only_what_was_named_is_read(tmp_path: Path) -> None:
    secret, named = tmp_path / "secret", tmp_path / "shared/sizes.txt"
    secret.write_text("secret")
    named.parent.mkdir()
    named.write_text("1 0\n2 1\n")
    (named.parent / "other").write_text("secret")
    file = tmp_path / "deep/x.toml"
    file.parent.mkdir()
    file.write_text('[[traffic]]\nsizes = { cdf_file = { path = "../shared/sizes.txt" } }\n')
    (file.parent / "other").write_text("secret")
    code = f"""
Path({str(file)!r}).read_text()
Path({str(named)!r}).read_text()
Path({str(file.parent / "other")!r}).read_text()
Path({str(named.parent / "other")!r}).read_text()
Path({str(secret)!r}).read_text()
os.listdir({str(tmp_path)!r})
Path("/etc/shadow").read_text()
os.listdir(Path.home())
import pandas, pyarrow.parquet, matplotlib.pyplot, bokeh.plotting
"""
    said = inside(code, out=tmp_path / "out", file=file)
    assert said == ["done", "done", *["PermissionError"] * 6, "done"], said


@needs_both
def test_no_program_is_started_and_no_socket_opened(tmp_path: Path) -> None:
    code = """
subprocess.run(["/bin/true"])
subprocess.run([sys.executable, "-c", ""])
os.posix_spawn("/bin/true", ["true"], {})
socket.socket()
socket.socket(socket.AF_UNIX)
socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
os.memfd_create("program")
from concurrent.futures import ThreadPoolExecutor; ThreadPoolExecutor(1).submit(socket.socket).result()
socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
import fcntl; a, b = os.openpty(); fcntl.ioctl(b, 0x5412, b"x")
a, b = socket.socketpair(); a.send(b"x")
"""
    said = inside(code, out=tmp_path / "out")
    assert said == ["PermissionError"] * 10 + ["done"], said


@needs_both
def test_workers_are_processes_of_python_in_the_same_sandbox(tmp_path: Path) -> None:
    attempt = "import socket; from pathlib import Path; Path('/tmp/clearway-was-here').write_text('x')"
    code = f"""
assert subprocess.run([sys.executable, "-c", "import clearway"]).returncode == 0
assert subprocess.run([sys.executable, "-c", {attempt!r}], stderr=-3).returncode == 1
assert subprocess.run([sys.executable, "-c", "import socket; socket.socket()"], stderr=-3).returncode == 1
subprocess.run(["/bin/true"])
"""
    assert inside(code, out=tmp_path / "out", workers=True) == ["done", "done", "done", "PermissionError"]
    assert not Path("/tmp/clearway-was-here").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_each_command_says_what_held_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ran = clearway("run", TINY, "--out", "r", "--no-sandbox", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads((tmp_path / "r/run.json").read_text())["sandbox"] == "none: --no-sandbox"
    more = ("--trace", tmp_path / "t.pftrace", "--pcap", "host0:p.pcapng")
    ran = clearway("run", TINY, "--out", tmp_path / "r", *more, cwd=tmp_path)
    assert json.loads((tmp_path / "r/run.json").read_text())["sandbox"] == HELD
    for command in (
        ["report", "r", "--out", "report.html"],
        ["compare", TINY, "--transport", "udp", "--out", "c"],
        ["explain", "r", "--flow", "0", "--picture", "p.png"],
        ["job", ROOT / "examples/training.toml", "--goal", "j.goal", "--chakra", "traces/j"],
    ):
        done = clearway(*command, cwd=tmp_path)
        assert done.returncode == 0, (command, done)
    assert (tmp_path / "j.goal").stat().st_size > 100 and len(list((tmp_path / "traces").glob("j.*.et"))) == 16
    (tmp_path / "j.goal").write_text("mine")
    again = clearway("job", ROOT / "examples/training.toml", "--goal", "j.goal", cwd=tmp_path)
    assert again.returncode == 2 and "exists already" in again.stderr and (tmp_path / "j.goal").read_text() == "mine"
    assert json.loads((tmp_path / "c/udp/run.json").read_text())["sandbox"] == HELD
    hidden = list(tmp_path.rglob(".*"))
    assert not hidden, hidden
    assert cw.run(cw.Scenario.load(TINY), threads=1).info["sandbox"] == "none: the Python API has none"


def test_a_sweep_runs_its_processes_inside(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base/tiny.toml").write_text(TINY.read_text())
    (tmp_path / "sweep.toml").write_text('scenario = "base/tiny.toml"\n[vary]\nseed = [1, 2]\n')
    done = clearway("sweep", "sweep.toml", "--workers", "2", "--store", "kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for run in (tmp_path / "kept/runs").iterdir():
        assert json.loads((run / "run.json").read_text())["sandbox"] == HELD
    assert {path.name for path in tmp_path.iterdir()} == {"base", "sweep.toml", "kept", "out"}


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_killed_command_leaves_nothing_beside_its_results(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    big = TINY.read_text() + "\n[measure]\nend = '1s'\n"
    (tmp_path / "x.toml").write_text(re.sub(r"arrivals = .*", "arrivals = { poisson = { load = 0.5 } }", big))
    command = [sys.executable, "-m", "clearway", "run", "x.toml", "--force", "--out", "new/r"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.DEVNULL, env=os.environ | {"TMPDIR": str(temporary)}
    )
    end = time.monotonic() + 60
    # It has been told what to remove.
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not children.read_text() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert list(temporary.iterdir())
    process.kill()
    process.wait()
    while (list(temporary.iterdir()) or (tmp_path / "new").exists()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not list(temporary.iterdir()) and not (tmp_path / "new").exists()


def test_a_page_is_opened_from_outside_of_the_sandbox(tmp_path: Path) -> None:
    cw.run(cw.Scenario.load(TINY).with_({"measure.packets": {}}), threads=1).save(tmp_path / "r")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened.part; mv {tmp_path}/opened.part {tmp_path}/opened\n')
    browser.chmod(0o755)
    opened = tmp_path / "opened"
    done = clearway("view", "r", "--no-open", cwd=tmp_path, BROWSER=str(browser))
    assert done.returncode == 0 and (tmp_path / "r/view.html").exists() and not opened.exists(), done
    done = clearway("view", "r", "--out", "page.html", cwd=tmp_path, BROWSER=str(browser))
    end = time.monotonic() + 60
    while not opened.exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert done.returncode == 0 and opened.read_text() == f"file://{tmp_path}/page.html\n"


def test_a_file_that_the_sandbox_holds_back_is_an_error_that_says_so(tmp_path: Path) -> None:
    if "landlock" not in HELD:
        pytest.skip(f"this kernel's sandbox: {HELD}")
    (tmp_path / "sizes").write_text("1 0\n2 1\n")
    text = TINY.read_text()
    text = re.sub(r"sizes = .*", 'sizes = { cdf_file = { path = "SIZES" } }', text).replace("SIZES", "link")
    (tmp_path / "x.toml").write_text(text)
    # A link to nowhere now: there is nothing to name before the sandbox closes.
    (tmp_path / "link").symlink_to(tmp_path / "hidden")
    done = clearway("check", "x.toml", cwd=tmp_path)
    assert done.returncode == 2 and "cdf_file" in done.stderr


def test_every_command_is_in_a_sandbox_or_says_why_not() -> None:
    found = {str(one.name or one.callback.__name__) for one in app.registered_commands if one.callback is not None}
    found |= {
        f"{group.name} {inner.name or inner.callback.__name__}"
        for group in app.registered_groups
        if group.typer_instance is not None
        for inner in group.typer_instance.registered_commands
        if inner.callback is not None
    }
    assert found == {*NEEDS, *EXEMPT} and not {*NEEDS} & {*EXEMPT}
    for one in app.registered_commands:
        assert one.callback is not None
        assert hasattr(one.callback, "__wrapped__") == (one.callback.__name__ in NEEDS), one.callback.__name__


def texts(schema: dict[str, object]) -> dict[str, str]:
    """Keys of a schema that take any text, without places in lists."""
    found: dict[str, str] = {}
    parts: dict[str, dict[str, object]] = schema["$defs"]  # type: ignore[assignment]

    def walk(of: object, key: str, within: tuple[str, ...]) -> None:
        if not isinstance(of, dict):
            return
        if (reference := of.get("$ref")) is not None:
            if within.count(reference) > 1:
                return
            walk(parts[reference.rsplit("/", 1)[1]], key, (*within, reference))
        kinds = of.get("type") if isinstance(of.get("type"), list) else [of.get("type")]
        fixed = {"enum", "const", "pattern"} & set(of)
        if "string" in kinds and not fixed:
            found[key] = str(of.get("description", ""))
        for several in ("anyOf", "oneOf", "allOf", "prefixItems"):
            for one in of.get(several, []):
                walk(one, key, within)
        walk(of.get("items"), key, within)
        for name, one in of.get("properties", {}).items():
            walk(one, f"{key}.{name}".lstrip("."), within)
        more = of.get("additionalProperties")
        walk(more, f"{key}.*".lstrip("."), within)
        open_ = more is True or ("object" in kinds and more is None and not {"properties", "oneOf", "anyOf"} & set(of))
        assert not open_ or key in found, f"{key} takes anything"

    walk(schema, "", ())
    return found


def test_every_text_of_a_scenario_is_known_for_what_it_may_name() -> None:
    found = texts(cw.schema())
    assert len(found) > 60 and "live.capture.*" in found
    unknown = {key: about for key, about in found.items() if kind_of(key) is None}
    assert not unknown, f"say in clearway/files/reach.py what these may name: {unknown}"
    # Nothing is listed that is no key any more.
    used = set(found)
    for key in SCENARIO:
        variants = [key.replace("TRANSPORT", place) for place in TRANSPORTS] if "TRANSPORT" in key else [key]
        assert used & set(variants), key
    # A new key is found wherever it is.
    schema = cw.schema()
    schema["properties"]["hook"] = {"type": ["string", "null"]}
    schema["$defs"]["CsvTrace" if "CsvTrace" in schema["$defs"] else next(iter(schema["$defs"]))].setdefault(
        "properties", {}
    )["hook"] = {"type": "string"}
    assert [key for key in texts(schema) if kind_of(key) is None]


def test_every_key_of_a_sweeps_file_is_known_for_what_it_may_name() -> None:
    assert set(SWEEP) == set(KEYS)


def test_every_key_that_reads_is_seen_before_the_sandbox_closes(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    (tmp_path / "f.0.et").write_text("")
    (tmp_path / "crate").mkdir()
    for key, kind in SCENARIO.items():
        plain = key.replace("TRANSPORT", "traffic.0.transport").replace("*", "any")
        for value, wanted in (("f", "f"), ("../" + tmp_path.name + "/f", "f"), (str(tmp_path / "f"), "f")):
            files, _ = reach.named("", [(plain, json.dumps(value))], tmp_path)
            reads = kind in (Kind.READS, Kind.READS_OF_RANKS)
            assert (wanted in {file.name for file in files}) == reads, (key, value)
            bare, _ = reach.named("", [(plain, value)], tmp_path)
            assert bare == files
        _, crates = reach.named("", [(plain, "crate")], tmp_path)
        assert bool(crates) == (kind is Kind.PROGRAM), key
    files, _ = reach.named('job = [{ trace = { chakra = { path = "f" } } }]', [], tmp_path)
    assert {file.name for file in files} == {"f", "f.0.et"}
    for text in ('vary = { "traffic.0.trace.csv.path" = ["f"] }', 'zip = [{ fabric.file.path = { values = ["f"] } }]'):
        assert reach.named(text, [], tmp_path)[0], text


def test_the_state_is_of_this_kernel() -> None:
    assert re.fullmatch(r"landlock\+seccomp|landlock|seccomp|none: .+", HELD)
    assert callable(_core.close_sandbox) and sandbox.state().startswith("none: ")


@needs_both
def test_a_report_may_be_written_twice(tmp_path: Path) -> None:
    assert clearway("run", TINY, "--out", "r", cwd=tmp_path).returncode == 0
    for _ in range(2):
        done = clearway("report", "r", "--out", "page.html", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
