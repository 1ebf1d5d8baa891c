"""A scenario, a sweep's file or a result from another person makes this machine do nothing without consent."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path

import clearway as cw
import pytest
from called import call
from clearway.programs import program as _program
from clearway.programs import trust

MAIL = """
name = "innocent"
transports = { mine = "." }
transport = "mine"
[fabric.star]
hosts = 4
[[traffic]]
sizes = { constant = "1KB" }
arrivals = "all_at_once"
"""
LIVE = """
name = "innocent"
transport = "udp"
[fabric.star]
hosts = 4
[live]
dilation = 1000
wait = "sleep"
{live}
[[traffic]]
sizes = {{ constant = "1KB" }}
arrivals = "all_at_once"
"""


@pytest.fixture(autouse=True)
def own_config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.delenv(trust.ALLOW, raising=False)
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    monkeypatch.delenv("CARGO_BUILD_TARGET_DIR", raising=False)


def script(place: Path, ran: Path) -> Path:
    """A program that leaves a trace where it has run."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\ntouch {ran}\n")
    place.chmod(0o755)
    return place


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    """A folder from another person: a scenario, a manifest and a program."""
    folder = tmp_path / "mail"
    script(folder / "target/release/mine", tmp_path / "ran")
    (folder / "Cargo.toml").write_text('[package]\nname = "mine"\n')
    (folder / "scenario.toml").write_text(MAIL)
    return folder


def commands(file: Path, out: Path) -> list[list[object]]:
    """All that read a scenario."""
    return [
        ["check", file],
        ["run", file, "--out", out],
        ["run", file, "--level", "flow", "--out", out],
        ["compare", file, "--out", out],
        ["compare", file, "--transport", "udp", "--out", out],
        ["sustain", file],
        ["live", file, "--out", out],
        ["job", file, "--goal", out.with_suffix(".goal")],
    ]


def test_a_scenario_from_a_mail_runs_no_program(mail: Path, tmp_path: Path) -> None:
    for command in commands(mail / "scenario.toml", tmp_path / "out"):
        called = call(*command)
        if command[0] == "compare" and "--transport" in command:
            continue  # the crate's transport is replaced: there is nothing to start
        assert called.code == 2, called
        assert "scenario.toml:3: transports.mine: the program" in called.err and "clearway trust" in called.err
        assert str(mail / "target/release/mine") in called.err and "--allow-programs" in called.err
    with pytest.raises(cw.ScenarioError, match="you have not trusted it"):
        cw.Scenario.load(mail / "scenario.toml")
    with pytest.raises(cw.ScenarioError, match="you have not trusted it"):
        cw.Scenario.from_toml(MAIL.replace('"."', '"mail"'), "x.toml", tmp_path)
    plain = cw.Scenario.from_toml(LIVE.format(live=""), "x.toml", mail)
    with pytest.raises(cw.ScenarioError, match="you have not trusted it"):
        plain.with_({"transports.mine": ".", "transport": "mine"})
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "manifest",
    [
        '[package]\nname = "{program}"\n',
        '[package]\nname = "../../../ran.sh"\n',
        '[package]\nname = "mine"\n[[bin]]\nname = "{program}"\n',
        '[package]\nname = "mine"\n[[bin]]\nname = "."\n[[bin]]\nname = "mine"\n',
        '[package]\nname = ""\n',
        '[package]\nname = "mine/../mine"\n',
        '[package]\nname = "a\\u0000b"\n',
    ],
)
def test_a_manifest_of_text_alone_names_no_program_of_the_machine(manifest: str, mail: Path, tmp_path: Path) -> None:
    program = script(tmp_path / "ran.sh", tmp_path / "ran")
    (mail / "Cargo.toml").write_text(manifest.format(program=program))
    for allowed in ([], ["--allow-programs"]):
        for command in commands(mail / "scenario.toml", tmp_path / "out")[:2]:
            called = call(*command, *allowed)
            assert called.code == 2 and "can't be the name of a crate or of its program" in called.err, called
    called = call("trust", mail)
    assert called.code == 2 and "can't be the name of a crate" in called.err
    assert not (tmp_path / "ran").exists()


def test_a_link_is_no_program_that_cargo_has_built(mail: Path, tmp_path: Path) -> None:
    program = script(tmp_path / "elsewhere", tmp_path / "ran")
    place = mail / "target/release/mine"
    for link_parent in (False, True):
        shutil.rmtree(mail / "target")
        if link_parent:
            (tmp_path / "release").mkdir()
            program.rename(tmp_path / "release/mine")
            (mail / "target").mkdir()
            (mail / "target/release").symlink_to(tmp_path / "release")
        else:
            place.parent.mkdir(parents=True)
            place.symlink_to(program)
        called = call("trust", mail)
        assert called.code == 2 and "is a link to" in called.err, called
        called = call("check", mail / "scenario.toml", "--allow-programs")
        assert called.code == 2 and "is a link to" in called.err, called
    assert not (tmp_path / "ran").exists()


def test_cargo_is_not_asked_in_a_folder_of_somebody_else(
    mail: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "bin/cargo", tmp_path / "ran")
    script(tmp_path / "bin/rustc", tmp_path / "ran")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    elsewhere = tmp_path / "built"
    (mail / ".cargo").mkdir()
    (mail / ".cargo/config.toml").write_text(f'[build]\ntarget-dir = "{elsewhere}"\nrustc-wrapper = "{mail}/x"\n')
    (mail / "target").rename(elsewhere)
    called = call("check", mail / "scenario.toml")
    assert called.code == 2 and f"the program {elsewhere / 'release/mine'} would" in called.err, called
    (mail / ".cargo/config.toml").unlink()
    assert "its crate is not built" in call("check", mail / "scenario.toml").err
    # Of a workspace that it belongs to.
    (tmp_path / "Cargo.toml").write_text('[workspace]\nmembers = ["mail"]\n')
    elsewhere.rename(tmp_path / "target")
    called = call("check", mail / "scenario.toml")
    assert f"the program {tmp_path / 'target/release/mine'} would" in called.err, called
    assert not (tmp_path / "ran").exists()


def test_trust_says_what_will_run_and_ends_when_that_changes(mail: Path, tmp_path: Path) -> None:
    program, ran = mail / "target/release/mine", tmp_path / "ran"
    code = mail / "src/lib.rs"
    code.parent.mkdir()
    code.write_text("//! code\n")
    helper = tmp_path / "helper.rs"
    helper.write_text("//! code from elsewhere\n")
    program.with_name("mine.d").write_text(f"{program}: {code} {helper}\n")
    os.utime(program)
    shown = call("trust", mail, "--show")
    assert shown.code == 0 and str(program) in shown.out and str(helper) in shown.out, shown
    assert "you have not trusted it" in call("check", mail / "scenario.toml").err
    trusted = call("trust", mail)
    assert trusted.code == 0 and str(program) in trusted.out and not ran.exists()
    assert call("trust").out == f"{mail}: {program}\n"
    place = Path(os.environ["XDG_CONFIG_HOME"]) / "clearway/trusted.json"
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert json.loads(place.read_text())["trusted"][0]["folder"] == str(mail)
    # It is started now, and is no simulator.
    called = call("check", mail / "scenario.toml")
    assert called.code == 2 and ran.exists(), called
    ran.unlink()
    for changed in (program, code, helper, mail / "Cargo.toml"):
        before = changed.read_text()
        mode, time = changed.stat().st_mode, changed.stat().st_mtime_ns
        changed.write_text(f"{before}# changed\n" if changed.name == "Cargo.toml" else before + "//\n")
        os.utime(changed, ns=(time - 10**9,) * 2)
        called = call("check", mail / "scenario.toml")
        assert called.code == 2 and "has changed since you trusted it" in called.err, (changed, called)
        changed.write_text(before)
        changed.chmod(mode)
        os.utime(changed, ns=(time,) * 2)
    assert not ran.exists()
    assert call("trust", mail, "--forget").code == 0
    assert "you have not trusted it" in call("check", mail / "scenario.toml").err
    assert call("trust", mail, "--forget").code == 2
    assert not ran.exists()


def test_trust_is_of_a_folder_and_not_of_what_looks_like_it(mail: Path, tmp_path: Path) -> None:
    assert call("trust", mail).code == 0
    copy = tmp_path / "copy"
    shutil.copytree(mail, copy)
    assert "you have not trusted it" in call("check", copy / "scenario.toml").err
    # The same folder by another way.
    link = tmp_path / "link"
    link.symlink_to(mail)
    assert "you have not trusted it" not in call("check", link / "scenario.toml").err
    (tmp_path / "ran").unlink()
    link.unlink()
    link.symlink_to(copy)
    assert "you have not trusted it" in call("check", link / "scenario.toml").err
    assert not (tmp_path / "ran").exists()


def test_allow_programs_holds_for_one_command(mail: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(trust.ALLOW, "")
    assert call("check", mail / "scenario.toml", "--allow-programs").code == 2
    assert (tmp_path / "ran").exists()
    monkeypatch.setenv(trust.ALLOW, "yes")
    (tmp_path / "ran").unlink()
    assert "you have not trusted it" in call("check", mail / "scenario.toml").err
    assert not (tmp_path / "ran").exists()


def test_a_sweep_file_starts_no_program_that_its_scenario_or_its_keys_name(mail: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.toml"
    plain.write_text(LIVE.format(live=""))
    for text in (
        'scenario = "mail/scenario.toml"\n[vary]\nseed = [1, 2]\n',
        'scenario = "plain.toml"\n[set]\ntransports.mine = "mail"\ntransport = "mine"\n[vary]\nseed = [1]\n',
        'scenario = "plain.toml"\n[set]\ntransports.mine = "mail"\n[vary]\ntransport = ["udp", "mine"]\n',
        'scenario = "plain.toml"\n[[zip]]\ntransport = ["mine"]\ntransports = { values = [{ mine = "mail" }] }\n',
        f"[scenario]\n{MAIL.replace('.', 'mail', 1).replace('[fabric', '[scenario.fabric')}".replace(
            "[[traffic", "[[scenario.traffic"
        )
        + "[vary]\nseed = [1]\n",
    ):
        (tmp_path / "sweep.toml").write_text(text)
        for more in ([], ["--plan"]):
            called = call("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "out", *more)
            assert called.code == 2 and "you have not trusted it" in called.err, (text, called)
    assert not (tmp_path / "ran").exists()


def test_a_result_whose_scenario_names_a_program_is_only_read(mail: Path, tmp_path: Path) -> None:
    watched = LIVE.format(live="[measure]\nports = ['switch0:1']")
    result = cw.run(cw.Scenario.from_toml(watched), threads=1)
    result.scenario_toml = result.scenario_toml + f"\n[transports.mine]\nfolder = '{mail}'\ndigest = '0'\n"
    place = result.save(tmp_path / "result")
    assert call("report", place, "--out", tmp_path / "report.html").code == 0
    assert call("explain", place).code in (0, 2)
    assert call("view", place, "--no-open").code in (0, 2)
    assert not cw.load(place).queue("switch0:1").empty
    assert not (tmp_path / "ran").exists()


def test_a_pipe_in_the_place_of_a_manifest_or_a_source_holds_up_nothing(mail: Path, tmp_path: Path) -> None:
    (mail / "Cargo.toml").unlink()
    os.mkfifo(mail / "Cargo.toml")
    assert "is not the folder of a crate" in call("check", mail / "scenario.toml").err
    (mail / "Cargo.toml").unlink()
    (mail / "Cargo.toml").write_text('[package]\nname = "mine"\n' + "#" * (_program.MANIFEST_BYTES_MAX + 1))
    assert "has more than" in call("check", mail / "scenario.toml").err
    (mail / "Cargo.toml").write_text('[package]\nname = "mine"\n')
    (mail / "target/release/mine.d").write_text(f"x: {mail}/src/lib.rs /dev/zero\n")
    assert call("trust", mail).code == 0


def test_a_scenario_overwrites_no_file_by_a_capture(tmp_path: Path) -> None:
    theirs = tmp_path / "somebody-elses-file"
    theirs.write_text("precious\n")
    for name in (f"'{theirs}'", "'../somebody-elses-file'", "'x/../../somebody-elses-file'", "''", "'.'"):
        file = tmp_path / "x.toml"
        file.write_text(LIVE.format(live=f"capture = {{ host0-switch0 = {name} }}"))
        called = call("live", file, "--out", tmp_path / "out")
        assert called.code == 2, called
        assert "live.capture.host0-switch0: " in called.err and "--capture host0-switch0:FILE" in called.err
        assert "x.toml:9: " in called.err
        with pytest.raises(cw.ScenarioError, match="folder of the results"):
            cw.Maze(file)
    # Nor by one that the command line names.
    called = call("live", file, "--capture", f"host0-switch0:{theirs}", "--out", tmp_path / "out")
    assert called.code == 2 and "it is there and no capture" in called.err, called
    assert theirs.read_text() == "precious\n"


def test_captures_that_a_scenario_names_are_among_its_results(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(LIVE.format(live="capture = { host0-switch0 = 'a.pcapng', host1 = 'b.pcapng' }"))
    other = tmp_path / "b.pcapng"
    # In real time: whether it kept pace is not what this is about.
    called = call("live", file, "--capture", f"host1:{other}", "--out", tmp_path / "out")
    assert called.code in (0, 1), called
    assert (tmp_path / "out/a.pcapng").stat().st_size > 100 and other.stat().st_size > 100
    assert not (tmp_path / "out/b.pcapng").exists()
    assert call("live", file, "--capture", f"host1:{other}", "--out", tmp_path / "out").code in (0, 1)


def test_a_scenario_takes_no_device_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(LIVE.format(live="attach = { host0 = 'netns:no_such', host1 = 'tap77' }"))
    called = call("live", file, "--attach", "host1=tap77", "--out", tmp_path / "out")
    assert called.code == 2 and "x.toml:9: live.attach.host0: " in called.err and "--attach host0=" in called.err
    # A program that the command line names is tried.
    both = ("--attach", "host0=netns:no_such", "--attach", "host1=tap77")
    called = call("live", file, *both, "--out", tmp_path / "out")
    assert called.code == 2 and "can't take a device" not in called.err


def test_a_sweep_file_names_no_folder_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(LIVE.format(live=""))
    text = 'scenario = "tiny.toml"\n[vary]\nseed = [1, 2]\n'
    for store in ("../../elsewhere", str(tmp_path / "elsewhere"), "a/../../elsewhere", "", "."):
        (tmp_path / "sweep.toml").write_text(f"store = '{store}'\n{text}")
        called = call("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "out/deep", "--workers", "1")
        assert called.code == 2 and "sweep.toml:1: store: " in called.err and "--store " in called.err, called
    assert {path.name for path in tmp_path.iterdir()} == {"tiny.toml", "sweep.toml"}
    (tmp_path / "sweep.toml").write_text(f"store = 'shared'\n{text}")
    assert cw.Sweep.load(tmp_path / "sweep.toml", tmp_path / "out").store == tmp_path / "out/shared"
    assert cw.Sweep.load(tmp_path / "sweep.toml", store=tmp_path / "s").store == tmp_path / "s"


def test_a_sweep_file_starts_no_cluster(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(LIVE.format(live=""))
    (tmp_path / "sweep.toml").write_text(
        'scenario = "tiny.toml"\n[vary]\nseed = [1]\n[cluster]\nlauncher = "distributed.LocalCluster"\n'
        'arguments = { interface = "eth0", dashboard_address = "0.0.0.0:80", local_directory = "/root" }\n'
    )
    called = call("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "out")
    assert called.code == 2 and "say --cluster" in called.err and "LocalCluster" in called.err
    assert not (tmp_path / "out").exists()
    called = call("sweep", tmp_path / "sweep.toml", "--cluster", "--workers", "1", "--out", tmp_path / "out")
    assert called.code == 2 and "neither workers nor dask" in called.err


if sys.platform == "win32":
    pytest.skip("needs scripts", allow_module_level=True)
