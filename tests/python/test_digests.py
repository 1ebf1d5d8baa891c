"""Each packet of every shipped scenario, and of a small scene of every scheme, moves as it did before.

`digests.csv` holds one digest per scenario, of its first microseconds. A change that moves a packet on purpose
writes it anew, in a commit that says so:

    python tests/python/test_digests.py
"""

from __future__ import annotations

import csv
from pathlib import Path

import clearway as cw
from clearway.results.read import check_tables

ROOT = Path(__file__).parents[2]
DIGESTS = Path(__file__).parent / "digests.csv"
FLAT = [path for folder in ("examples", "crates/web/scenes") for path in (ROOT / folder).glob("*.toml")]
FILES = sorted([*FLAT, *(ROOT / "python/clearway/papers").rglob("*.toml")])
# Of the time that a scenario takes, the shortest of these in which this many packets cross a link: fabrics are as fast
# as 100 Gbps or as slow as 100 Mbps.
SPANS_US = (20, 100, 1_000, 10_000, 100_000)
HOPS = 50_000

SCENE = """
fabric.leaf_spine = { racks = 3, hosts_per_rack = 4, spines = 2, spine_rate = "100Gbps" }

[[traffic]]
name = "incast"
sizes = { constant = "60KB" }
arrivals = "all_at_once"
pattern = { incast = { degree = 7 } }
receivers = "0"
flows = 7

[[traffic]]
name = "mix"
sizes = "websearch"
arrivals = { poisson = { load = 0.8 } }
flows = 60
"""

UPLINK = {"link": ["leaf0", "spine0"], "at": "20us", "until": "2ms"}
FAULTS = {
    "with loss": {"failure": [{**UPLINK, "loss": 0.01, "bit_error_rate": 1e-7, "one_way": True}]},
    "with a slow link": {"failure": [{**UPLINK, "rate": "10Gbps"}]},
    "with a flapping link": {
        "failure": [{**UPLINK, "flap": {"down": "20us", "every": "100us"}}],
        "reroute_delay": "10us",
    },
    "with news from switch to switch": {
        "failure": [UPLINK],
        "reroute_delay": "10us",
        "reroute_per_hop": "50us",
        "reroute_compute_max": "50us",
    },
}


def scenarios() -> dict[str, cw.Scenario]:
    """Every scenario file, and the scene over every transport and flow control, and with every kind of fault."""
    found = {}
    for path in FILES:
        if (
            "[scenario]" not in (text := path.read_text())
            and not text.startswith("scenario ")
            and "\nscenario =" not in text
        ):
            found[path.relative_to(ROOT).as_posix()] = cw.Scenario.load(path)
    scene, known = cw.Scenario.from_toml(SCENE), cw.schemes()
    for name in known.index[known["kind"] == "transport"]:
        found[f"scene {name}"] = scene.with_(transport=name)
    for name in known.index[known["kind"] == "flow control"]:
        found[f"scene rdma over {name}"] = scene.with_(transport="rdma", flow_control=name)
    for name, settings in FAULTS.items():
        found[f"scene newreno {name}"] = scene.with_({"transport": "newreno", **settings})
    return found


def cut(scenario: cw.Scenario, us: int) -> cw.Scenario:
    """The beginning of a scenario."""
    measure = {key: value for key, value in scenario.to_dict()["measure"].items() if key not in ("drain", "end")}
    return scenario.with_({"measure": {**measure, "end": f"{us}us"}})


def run(scenario: cw.Scenario, us: int, threads: int) -> cw.Result:
    result = cw.run(cut(scenario, us), threads=threads, progress=False)
    # The checks on results that are read hold for all that are written.
    check_tables(result._tables, result.info)
    return result


def kept() -> dict[str, tuple[int, str]]:
    with DIGESTS.open() as file:
        return {row["scenario"]: (int(row["us"]), row["digest"]) for row in csv.DictReader(file)}


def test_every_digest_is_what_it_was() -> None:
    known, now = kept(), scenarios()
    assert list(known) == list(now), "scenarios came or went: python tests/python/test_digests.py"
    moved = {
        name: (digest, got)
        for threads, (name, (us, digest)) in enumerate(known.items())
        # By turns on one thread and on two, which must not matter.
        if (got := run(now[name], us, 1 + threads % 2).info["digest"]) != digest
    }
    assert moved == {}, "packets move that did not: a bug, or a change to be written down"


def write() -> None:
    """Writes the digests of this build."""
    with DIGESTS.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["scenario", "us", "digest"])
        files = {path.relative_to(ROOT).as_posix() for path in FILES}
        for name, scenario in scenarios().items():
            for us in SPANS_US if name in files else SPANS_US[2:]:
                result = run(scenario, us, 1)
                if result.info["packet_hops"] >= HOPS:
                    break
            rows.writerow([name, us, result.info["digest"]])
            print(name, us, result.info["packet_hops"], round(result.info["cpu_seconds"], 2))


if __name__ == "__main__":
    write()
