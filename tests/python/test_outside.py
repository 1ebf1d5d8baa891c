"""Transports from crates outside of Clearway's tree."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import clearway as cw
import pytest
from clearway import _core

ROOT = Path(__file__).parents[2]

TINY = """
name = "tiny"
transport = "mine"

[transports]
mine = "mine"

[fabric.leaf_spine]
racks = 4
hosts_per_rack = 4
spines = 2

[[traffic]]
name = "web"
sizes = "imc10"
arrivals = { poisson = { load = 0.5 } }
flows = 200
"""

# Two transports of one crate.
BOTH = TINY.replace('mine = "mine"', 'mine = "mine"\ntrouble = "mine"')


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """`test_trust.py` is about whose programs run; here all may."""
    monkeypatch.setenv("CLEARWAY_ALLOW_PROGRAMS", "1")


@pytest.fixture(scope="session")
def program() -> Path:
    """The program of the crate that `clearway new` writes, as a part of the tree: seconds after `cargo test`."""
    command = ["cargo", "build", "--workspace", "--locked", "--example", "mine", "--message-format", "json"]
    said = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    made = [json.loads(line).get("executable") for line in said.splitlines()]
    return next(Path(program) for program in made if program and Path(program).name.startswith("mine"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cw.new_transport("mine", tmp_path)
    return tmp_path


@pytest.fixture
def built(folder: Path, program: Path) -> Path:
    place = folder / "mine/target/release"
    place.mkdir(parents=True)
    shutil.copy(program, place / "mine")
    return folder


def refused(folder: Path, text: str = TINY) -> str:
    with pytest.raises(cw.ScenarioError) as error:
        cw.run(cw.Scenario.from_toml(text, "x.toml", folder), threads=1)
    return str(error.value)


def faked(folder: Path, says: str) -> None:
    """A program that says something at its standard input, a socket."""
    place = folder / "mine/target/release/mine"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(
        f"#!{sys.executable}\nimport socket, sys, time\nsocket.socket(fileno=0).sendall({says.encode()!r})\n"
    )
    place.chmod(0o755)


def engine(**other: object) -> str:
    said = {"protocol": _core.PROTOCOL, "version": cw.__version__, "source": _core.SOURCE, "transports": ["mine"]}
    return json.dumps({"engine": said | other}) + "\n"


def test_a_crate_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    crate = cw.new_transport("own_one", tmp_path)
    manifest = (crate / "Cargo.toml").read_text()
    assert 'name = "own_one"' in manifest and f'path = "{ROOT}/crates/clearway"' in manifest
    for name in ("src/lib.rs", "src/main.rs", "src/tests.rs", "README.md", "scenario.toml"):
        text = (crate / name).read_text()
        assert "CLEARWAY" not in text and " mine" not in text, name
    assert (crate / "Cargo.lock").read_bytes() == (ROOT / "Cargo.lock").read_bytes()
    with pytest.raises(FileExistsError, match="exists already"):
        cw.new_transport("own_one", tmp_path)
    for name, why in {
        "Own": "begins with a small letter",
        "own-one": "small letters, digits and underscores",
        "../own": "begins with a small letter",
        "": "begins with a small letter",
        "x" * 65: "at most 64",
        "dcpim": "one of Clearway's own",
        "match": "a meaning in Rust",
        "serde": "a meaning in Rust",
    }.items():
        with pytest.raises(ValueError, match=why):
            cw.new_transport(name, tmp_path)
    with pytest.raises(NotADirectoryError, match="make it first"):
        cw.new_transport("two", tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="is not the folder of Clearway's source"):
        cw.new_transport("two", tmp_path, source=tmp_path)
    other = tmp_path / "other/crates/clearway"
    other.mkdir(parents=True)
    (other / "Cargo.toml").touch()
    (tmp_path / "other/Cargo.toml").write_text('[workspace.package]\nversion = "9.9.9"\n')
    with pytest.raises(ValueError, match=r"is the source of Clearway 9\.9\.9"):
        cw.new_transport("two", tmp_path, source=tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "own_one"]


def test_without_clearways_source_it_says_where_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import clearway.programs.new

    monkeypatch.setattr(clearway.programs.new, "__file__", str(tmp_path / "site-packages/clearway/programs/new.py"))
    with pytest.raises(FileNotFoundError, match=r"git clone .*--source"):
        cw.new_transport("mine", tmp_path)


def test_a_crate_that_cannot_run_is_refused_with_what_to_do(folder: Path) -> None:
    gone = refused(folder, TINY.replace('"mine"\n\n[fabric', '"../gone"\n\n[fabric'))
    assert (
        gone.startswith('x.toml:6: transports.mine: "../gone" is not the folder of a crate') and "clearway new" in gone
    )
    assert "`cargo build --release --manifest-path" in refused(folder)
    faked(folder, "")
    assert "is not a program that runs scenarios" in refused(folder) or "without an answer" in refused(folder)
    faked(folder, "hello\n")
    assert "what no command understands" in refused(folder)
    for other in ({"version": "9.9.9"}, {"source": "0"}, {"protocol": 0}):
        faked(folder, engine(**other))
        assert "was built against another Clearway" in refused(folder), other
    faked(folder, engine(transports=["yours"]))
    assert "has no transport mine, but yours" in refused(folder)
    faked(folder, engine())
    assert "ended with status 0 without an answer" in refused(folder)
    (folder / "mine/target/release/mine").write_bytes(b"\x7fELF")
    assert "can't be started" in refused(folder)
    noted = folder / "mine/target/release/mine.d"
    noted.write_text(f"{folder}/mine/target/release/mine: {folder}/mine/src/lib.rs\n")
    os.utime(folder / "mine/src/lib.rs", (time.time() + 60,) * 2)
    assert "was built before" in refused(folder) and "src/lib.rs changed" in refused(folder)
    noted.write_text(f"{folder}/mine/target/release/mine: {folder}/yours/src/lib.rs\n")
    assert "which is of another crate" in refused(folder)
    (folder / "mine/Cargo.toml").write_text("[package")
    assert "can't be read as that of a crate" in refused(folder)
    unknown = refused(folder, TINY.replace("[transports]\nmine", "[transports]\nyours"))
    assert unknown.startswith('x.toml:3: transport: "mine" is not a known name') and "transports = {" in unknown


def test_runs_are_as_with_clearways_own_transports(built: Path) -> None:
    scenario = cw.Scenario.from_toml(TINY, "x.toml", built)
    assert scenario.transports == ["mine"] and scenario.check() == (16, 200)
    one, two = (cw.run(scenario, threads=threads, parts=parts) for threads, parts in ((1, 1), (2, 4)))
    assert one.ok and two.ok and one.unfinished == 0
    assert one.digest == two.digest
    assert one.info["cpu_seconds"] > 0 and one.info["peak_memory_bytes"] > 1_000_000
    saved = cw.load(one.save(built / "result"))
    assert saved.flows.to_arrow().equals(one.flows.to_arrow()) and saved.digest == one.digest
    crate = saved.scenario_toml.partition("[transports.mine]")[2]
    assert 'folder = "mine"' in crate and "digest = " in crate
    again = cw.Scenario.from_toml(saved.scenario_toml, "again", built)
    assert again.to_toml() == saved.scenario_toml and cw.run(again, threads=1).digest == one.digest
    flow = cw.run(scenario, level="flow")
    assert flow.level == "flow" and flow.unfinished == 0
    assert scenario.forecast(probe_seconds=0.01).cpu_seconds is not None
    other = scenario.with_(transport={"mine": {"window": "3KB"}})
    assert cw.run(other, threads=1).digest != one.digest


def test_a_comparison_has_it_beside_the_own_ones(built: Path) -> None:
    scenario = cw.Scenario.from_toml(TINY, "x.toml", built)
    compared = cw.compare(scenario, ["mine", "dcpim"], threads=1, folder=built / "compared")
    assert list(compared.table().index) == ["mine", "dcpim"]
    plain = TINY.replace('[transports]\nmine = "mine"\n', "").replace('"mine"', '"dcpim"')
    assert compared.results[1].digest == cw.run(cw.Scenario.from_toml(plain), threads=1).digest
    assert compared.results[0].digest != compared.results[1].digest
    before = (built / "compared/mine/run.json").stat().st_mtime_ns
    cw.compare(scenario, ["mine"], threads=1, folder=built / "compared", keep=True)
    assert (built / "compared/mine/run.json").stat().st_mtime_ns == before
    # Another crate, another result.
    with (built / "mine/src/lib.rs").open("a") as code:
        code.write("// changed\n")
    again = cw.Scenario.from_toml(TINY, "x.toml", built)
    cw.compare(again, ["mine"], threads=1, folder=built / "compared", keep=True)
    assert (built / "compared/mine/run.json").stat().st_mtime_ns != before
    old = compared.results[0].scenario_toml
    assert "transports.mine.digest" in refused(built, old)


def test_its_settings_have_errors_like_all_others(built: Path) -> None:
    def of(settings: str) -> str:
        return refused(built, TINY.replace('transport = "mine"', f"transport = {{ mine = {{ {settings} }} }}"))

    assert of('windw = "3KB"').startswith(
        'x.toml:3: transport.mine.windw: "windw" is not a known key here; did you mean "window"?'
    )
    assert of('window = "0B"').startswith("x.toml:3: transport.mine.window: at 0 nothing would be granted")
    assert of("timeout = 3").startswith("x.toml:3: transport.mine.timeout: ")
    table = TINY.replace('transport = "mine"', "") + '\n[transport.mine]\ntimeout = "soon"\n'
    assert refused(built, table).startswith("x.toml:20: transport.mine.timeout: ")
    assert refused(built, TINY.replace('= "mine"\n\n[tr', '= "mein"\n\n[tr')).startswith("x.toml:3: transport: ")
    scenario = cw.Scenario.from_toml(TINY, "x.toml", built)
    with pytest.raises(cw.ScenarioError, match=r"--set transport\.mine\.windw=3: .*is not a known key"):
        scenario.with_text([("transport.mine.windw", "3")])
    with pytest.raises(cw.ScenarioError, match=r"x\.toml:18: traffic\[0\]\.flowz|\"flowz\" is not a known key"):
        cw.Scenario.from_toml(TINY + "flowz = 3\n", "x.toml", built)


def test_a_program_in_trouble_is_an_error_with_its_reason(built: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def does(what: str) -> cw.Scenario:
        return cw.Scenario.from_toml(BOTH, "x.toml", built).with_(transport={"trouble": {"does": what}})

    assert cw.run(does("print"), threads=2).ok
    out, err = capfd.readouterr()
    assert "a host is made" in err and out == ""
    with pytest.raises(
        cw.ScenarioError, match=r"transports\.trouble: its code has panicked at .*mine\.rs:\d+: no host"
    ):
        cw.run(does("panic"), threads=2)
    with pytest.raises(cw.ScenarioError, match="was killed by SIGABRT without an answer"):
        cw.run(does("abort"), threads=1)


def test_what_only_clearways_own_can_do_says_so(built: Path) -> None:
    scenario = cw.Scenario.from_toml(TINY, "x.toml", built)
    with pytest.raises(cw.ScenarioError, match="only the simulator runs, and not live runs"):
        cw.live(scenario)

    class Mine(cw.Control):
        pass

    with pytest.raises(cw.ScenarioError, match="and a Control in Python"):
        scenario.with_({"traffic.0.transport": Mine()})
    elsewhere = built / "yours"
    shutil.copytree(built / "mine", elsewhere)
    with pytest.raises(cw.ScenarioError, match="is in another crate than mine"):
        scenario.with_({"transports.yours": "yours", "traffic.0.resubmit": [{"over": "yours"}]})


def test_a_sweep_runs_it_from_anywhere(built: Path) -> None:
    (built / "x.toml").write_text(TINY)
    scenario = cw.Scenario.load(built / "x.toml")
    swept = cw.sweep(scenario, {"transport": ["mine", "udp"]}, folder=built / "swept", workers=2)
    table = swept.table()
    assert list(table["status"]) == ["done", "done"] and table["digest"].nunique() == 2


def test_captures_have_its_packets(built: Path) -> None:
    file = built / "host0.pcapng"
    cw.run(cw.Scenario.from_toml(TINY, "x.toml", built), threads=1, pcap={"host0": file})
    assert file.stat().st_size > 1_000


def started(folder: Path, *sets: str) -> subprocess.Popen[str]:
    (folder / "x.toml").write_text(BOTH.replace("flows = 200", "flows = 500000"))
    command = [sys.executable, "-m", "clearway", "run", "x.toml", "--threads", "1", "--force"]
    command += [part for each in sets for part in ("--set", each)]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def children(of: int) -> list[int]:
    text = Path(f"/proc/{of}/task/{of}/children").read_text() if Path(f"/proc/{of}").exists() else ""
    return [int(number) for number in text.split()]


def until_it_runs(command: subprocess.Popen[str]) -> int:
    """The process of a crate's program that has worked for a second."""
    ticks, end = os.sysconf("SC_CLK_TCK"), time.monotonic() + 60
    while time.monotonic() < end:
        for child in children(command.pid):
            stat = Path(f"/proc/{child}/stat")
            if stat.exists() and int(stat.read_text().rsplit(")", 1)[1].split()[11]) > ticks:
                return child
        time.sleep(0.05)
    raise AssertionError("it does not run")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_an_interrupted_run_keeps_its_results_and_leaves_no_process(built: Path) -> None:
    command = started(built)
    child = until_it_runs(command)
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 130 and "the results are those up to there" in err
    assert cw.load(built / "out/x").interrupted and not Path(f"/proc/{child}").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_program_that_hangs_or_is_left_ends(built: Path) -> None:
    hanging = started(built, 'transport={ trouble = { does = "hang" } }', "traffic.web.flows=10")
    child = until_it_runs(hanging)
    for _ in range(2):
        hanging.send_signal(signal.SIGINT)
        time.sleep(0.2)
    hanging.communicate(timeout=60)
    assert hanging.returncode == 130 and not Path(f"/proc/{child}").exists()
    left = started(built)
    child = until_it_runs(left)
    left.kill()
    left.communicate(timeout=60)
    end = time.monotonic() + 30
    while Path(f"/proc/{child}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()


def test_a_trusted_program_runs_in_the_sandbox_of_its_command(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLEARWAY_ALLOW_PROGRAMS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(built / "config"))
    (built / "x.toml").write_text(TINY)
    (built / "sweep.toml").write_text('scenario = "x.toml"\n[vary]\nseed = [1, 2]\n')

    def clearway(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "clearway", *arguments]
        return subprocess.run(command, cwd=built, capture_output=True, text=True)

    untrusted = clearway("run", "x.toml")
    assert untrusted.returncode == 2 and "you have not trusted it" in untrusted.stderr
    trusted = clearway("trust", "mine")
    assert trusted.returncode == 0 and str(built / "mine/target/release/mine") in trusted.stdout
    for command in (["check", "x.toml"], ["run", "x.toml"], ["sweep", "sweep.toml", "--workers", "2"]):
        ran = clearway(*command)
        assert ran.returncode == 0, (command, ran)
    # The program is inside, too: what it prints and writes goes where the command's does.
    held = json.loads((built / "out/x/run.json").read_text())["sandbox"]
    swept = [json.loads(file.read_text())["sandbox"] for file in (built / "out/sweep/store/runs").glob("*/run.json")]
    assert swept == [held, held] and held != "none: the Python API has none"
    with (built / "mine/src/lib.rs").open("a") as code:
        code.write("// changed\n")
    os.utime(built / "mine/src/lib.rs", (0, 0))
    changed = clearway("run", "x.toml")
    assert changed.returncode == 2 and "has changed since you trusted it" in changed.stderr
    assert clearway("run", "x.toml", "--allow-programs").returncode == 0


def test_the_command_writes_a_crate_and_says_what_is_next(tmp_path: Path) -> None:
    def new(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "clearway", "new", "transport", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    first = new("mine")
    assert first.returncode == 0 and "clearway trust . && clearway run scenario.toml" in first.stdout
    second = new("mine")
    assert second.returncode == 2 and second.stderr.startswith("error: mine exists already")
    assert new("My").returncode == 2


@pytest.mark.slow
def test_a_crate_builds_passes_its_tests_and_runs(tmp_path: Path) -> None:
    crate = cw.new_transport("own_one", tmp_path)
    # Shared with the tree, so that other crates are compiled once.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target/outside")}
    for command in (["cargo", "test", "--quiet"], ["cargo", "build", "--quiet", "--release"]):
        subprocess.run(command, cwd=crate, env=environment, check=True)
    command = [sys.executable, "-m", "clearway", "run", "scenario.toml"]
    ran = subprocess.run(command, cwd=crate, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    result = cw.load(crate / "out/scenario")
    assert result.ok and result.unfinished == 0
    with (crate / "src/lib.rs").open("a") as code:
        code.write("// changed\n")
    ran = subprocess.run(command, cwd=crate, env=environment, capture_output=True, text=True)
    assert ran.returncode == 2 and "was built before" in ran.stderr
