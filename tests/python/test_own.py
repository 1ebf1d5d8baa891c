"""Congestion controls of one's own: the same packets as the one in Rust, and what happens when they are wrong."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import clearway as cw
import pytest

ROOT = Path(__file__).parents[2]
FAULTY = ROOT / "crates/custom/tests/faulty.wasm"
# Marks, losses of packets and of acknowledgements, timeouts, and more than the network carries.
SCENE = """
fabric.leaf_spine = { racks = 3, hosts_per_rack = 4, spines = 2, spine_rate = "100Gbps" }

[[traffic]]
name = "incast"
sizes = { constant = "600KB" }
arrivals = "all_at_once"
pattern = { incast = { degree = 7 } }
receivers = "0"
flows = 21

[[traffic]]
name = "mix"
sizes = "websearch"
arrivals = { poisson = { load = 0.8 } }
flows = 100

[[failure]]
link = ["leaf0", "spine0"]
at = "20us"
until = "2ms"
loss = 0.01
"""


def scene(**keys: Any) -> cw.Scenario:
    return cw.Scenario.from_toml(SCENE, folder=ROOT).with_(**keys)


def module(name: str, **keys: Any) -> dict[str, Any]:
    return {"custom": {"module": str(ROOT / "examples/wasm" / name), "ecn": "proportional", **keys}}


def faulty(**settings: float) -> dict[str, Any]:
    return {"custom": {"module": str(FAULTY), "settings": settings}}


def example(path: str = "examples/own_dctcp.py") -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def both(scenario: cw.Scenario) -> cw.Result:
    """On one thread and on two, which must not matter."""
    alone, together = (cw.run(scenario, threads=threads, progress=False) for threads in (1, 2))
    assert alone.info["digest"] == together.info["digest"]
    assert list(alone.flows.to_pandas()["reason"]) == list(together.flows.to_pandas()["reason"])
    return alone


@pytest.mark.parametrize("keys", [{}, {"switch.balancing": "spray"}], ids=["losses", "reordering"])
def test_dctcp_is_the_same_in_every_language(keys: dict[str, Any]) -> None:
    scenario = scene().with_(keys)
    built_in = both(scenario.with_(transport="dctcp"))
    counters = built_in.counters.to_pandas()
    counted = counters.groupby(counters.columns[-2], observed=True)[counters.columns[-1]].sum()
    assert counted["ecn_reductions"] > 100 and counted["fast_retransmissions"] > 10, "a scene that asks for something"
    dctcp = example().Dctcp
    for transport in (module("dctcp-rust.wasm"), module("dctcp-c.wasm"), dctcp()):
        own = both(scenario.with_(transport=transport))
        assert own.info["digest"] == built_in.info["digest"], transport
        assert own.ok and own.unfinished == 0
    slower = built_in.info["digest"]
    for transport in (module("dctcp-c.wasm", settings={"g": 1.0}), dctcp(g=1.0)):
        assert cw.run(scenario.with_(transport=transport), progress=False).info["digest"] != slower, "a setting counts"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (1, "trapped in clearway_on_ack"),
        (2, "ran for too long in clearway_on_ack"),
        (3, "bytes of memory, and has at most"),
        (4, "answered a window of 0 bytes"),
        (5, "answered a rate of 1 bits a second"),
        (6, "out of bounds memory access"),
        (8, "answered a timer of 1 ps"),
    ],
)
def test_a_module_that_fails_ends_its_flow_and_the_run_goes_on(fault: int, words: str) -> None:
    result = both(scene(transport=faulty(fault=fault, at=200)))
    flows = result.flows.to_pandas()
    failed = flows[flows["status"] == "failed"]
    assert result.ok and 0 < len(failed) < len(flows), "short flows end before the fault"
    assert all(words in reason for reason in failed["reason"])
    assert set(flows[flows["status"] != "failed"]["status"]) == {"completed"}


class Raises(cw.Control):
    def __init__(self, at: int) -> None:
        self.at = at

    def on_ack(self, acks: Any) -> None:
        self.at -= 1
        if self.at == 0:
            raise ZeroDivisionError("of mine")


class Nonsense(Raises):
    def on_ack(self, acks: Any) -> None:
        self.at -= 1
        if self.at == 0:
            self.window_bytes = -1


def test_an_exception_ends_its_flow_with_the_traceback() -> None:
    result = both(scene(transport=Raises(at=200)))
    flows = result.flows.to_pandas()
    failed = flows[flows["status"] == "failed"]
    assert result.ok and 0 < len(failed) < len(flows)
    for reason in failed["reason"]:
        assert "ZeroDivisionError: of mine in Raises.on_ack" in reason and "test_own.py" in reason
    flows = cw.run(scene(transport=Nonsense(at=200)), progress=False).flows.to_pandas()
    assert any("window_bytes = -1: must be a number from 0" in reason for reason in flows["reason"])


class Looks(cw.Control):
    ecn = "classic"

    def on_start(self, start: Any) -> None:
        assert start.flow < 3 and start.window_bytes == self.window_bytes == 10 * start.mss_bytes

    def on_ack(self, acks: Any) -> None:
        assert acks.hops == 1 and acks.count == 1 and acks.marked == (acks.marked_bytes > 0), "one switch"
        assert acks.window_limited in (True, False) and acks.phase == 0
        self.window_bytes += acks.growing_bytes

    def on_mark(self, mark: Any) -> None:
        self.window_bytes = max(self.window_bytes // 2, 1)


def test_each_number_is_in_its_own_place() -> None:
    star = 'fabric.star = { hosts = 4 }\ntraffic = [{ sizes = { constant = "600KB" }, arrivals = "all_at_once", '
    text = star + "pattern = { incast = { degree = 3 } }, flows = 3 }]"
    result = cw.run(cw.Scenario.from_toml(text).with_(transport=Looks()), progress=False)
    assert list(result.flows["status"]) == ["completed"] * 3, list(result.flows["reason"])


def test_a_result_says_what_ran(tmp_path: Path) -> None:
    scenario = scene(transport=example().Dctcp(g=0.5))
    said = scenario.to_dict()["transport"]["custom"]
    assert said["python"] == "own_dctcp.Dctcp" and said["settings"] == {"alpha": 1.0, "g": 0.5} and said["digest"]
    cw.run(scenario, progress=False).save(tmp_path / "out")
    kept = (tmp_path / "out" / "scenario.toml").read_text()
    assert "own_dctcp.Dctcp" in kept and said["digest"] in kept
    with pytest.raises(cw.ScenarioError, match="a class in Python, which a file can't hold"):
        cw.run(cw.Scenario.from_toml(kept), progress=False)


def test_a_module_is_found_beside_its_scenario(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples/wasm/dctcp-c.wasm", tmp_path / "mine.wasm")
    text = 'transport = { custom = { module = "mine.wasm", ecn = "proportional" } }\n' + SCENE
    (tmp_path / "scene.toml").write_text(text)
    named = cw.Scenario.load(tmp_path / "scene.toml")
    assert named.to_dict()["transport"]["custom"]["digest"]
    wrong = {
        "nowhere.wasm": "could not be read",
        "scene.toml": "is not a WebAssembly module",
        "renamed.wasm": "exports no function clearway_on_ack",
    }
    content = (tmp_path / "mine.wasm").read_bytes()
    (tmp_path / "renamed.wasm").write_bytes(content.replace(b"clearway_on_ack", b"clearway_on_axk"))
    for path, words in wrong.items():
        with pytest.raises(cw.ScenarioError, match=words) as error:
            cw.Scenario.from_toml(text.replace("mine.wasm", path), folder=tmp_path)
        assert error.value.key.endswith("custom.module") and path in str(error.value)
    with pytest.raises(cw.ScenarioError, match="is not a setting of the module; it has g, alpha"):
        named.with_({"transport.custom.settings.gain": 0.1})
    with pytest.raises(cw.ScenarioError, match="name the file of a WebAssembly module"):
        scene(transport="custom")
    with pytest.raises(TypeError, match="a class of yours"):
        scene(transport=cw.Control())


def test_what_it_costs_is_on_the_page_as_it_was_measured() -> None:
    own_page = example("tests/own_page.py")
    record, page = json.loads(own_page.RECORD.read_text()), own_page.PAGE.read_text()
    assert own_page.filled(page, record) == page
    slower = {**record, "cost": {**record["cost"], "module": [9.0]}}
    assert "| +800.0% | +800.0% to +800.0% | +5% | missed |" in own_page.filled(page, slower)
    assert all(len(record["cost"][name]) >= own_page.ROUNDS for name in own_page.CONTROLS)


OWN = """
import clearway as cw
import {helper}
GAIN = {gain}
UNUSED = {unused}

def grow(bytes_: int) -> int:
    return bytes_ * GAIN

class Mine(cw.Control):
    def on_start(self, start) -> None:
        self.window_bytes = grow(10_000) + {helper}.more()
"""


def test_the_digest_of_a_control_holds_what_it_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are kept by it: of a changed constant or function, too."""
    monkeypatch.syspath_prepend(tmp_path)

    def digest(number: int, gain: int = 1, unused: int = 1, more: int = 1) -> str:
        # Modules of other names: what is imported stays as it is.
        (tmp_path / f"helps{more}.py").write_text(f"def more() -> int:\n    return {more}\n")
        text = OWN.format(helper=f"helps{more}", gain=gain, unused=unused).replace(f"helps{more}.more", "helps.more")
        text = text.replace(f"import helps{more}", f"import helps{more} as helps")
        (tmp_path / f"own_control_{number}.py").write_text(text)
        control = importlib.import_module(f"own_control_{number}").Mine()
        said = cw.Scenario.load("examples/tiny.toml").with_(transport=control).to_dict()["transport"]["custom"]
        return str(said["digest"])

    plain = digest(1)
    assert digest(2) == digest(3, unused=2) == plain
    assert len({plain, digest(4, gain=2), digest(5, more=2)}) == 3
