"""What the package needs of Rust. Its users find it in more comfortable form in `clearway`."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias, TypedDict, final

__all__ = [
    "COMMIT",
    "Scenario",
    "__version__",
    "dissector",
    "estimate",
    "fabric_schema",
    "harmony_adversary",
    "harmony_allocation",
    "harmony_k_star",
    "harmony_message_delay_max",
    "harmony_queue_max",
    "harmony_queueing_delay_max",
    "harmony_slot_efficiency",
    "live",
    "live_bench",
    "live_join",
    "live_machines",
    "live_part",
    "pyrrha_resources",
    "r2c2_link_weights",
    "r2c2_rates",
    "r2c2_recompute_times",
    "r2c2_select",
    "r2c2_throughput",
    "r2c2_water_filling",
    "schema",
    "schemes",
    "simulate",
    "workloads",
    "write_job",
]

__version__: str
COMMIT: str

_Column: TypeAlias = tuple[str, str, str, str, bytes, list[str]]
_Run: TypeAlias = tuple[str, str, list[tuple[str, list[_Column]]]]
_Progress: TypeAlias = Callable[[int, int, int, int, float], object]

class _Scheme(TypedDict):
    name: str
    kind: str
    title: str
    summary: str
    needs: str
    source: str
    family: str
    compared: bool
    beside: str
    rejects: bool

class _Foreseen(TypedDict):
    hosts: int
    flows: int
    packet_hops: int
    end_ps: int
    memory: dict[str, int]
    cpu_seconds: float | None
    fits: str | None

@final
class Scenario:
    @staticmethod
    def parse(text: str, name: str, folder: str | PathLike[str], sets: list[tuple[str, str]]) -> Scenario: ...
    def with_sets(self, sets: list[tuple[str, str]]) -> Scenario: ...
    def to_toml(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def transports(self) -> list[str]: ...
    def check(self) -> tuple[int, int]: ...
    def foresee(self, probe_cpu_s: float, memory_bytes_max: int | None) -> _Foreseen: ...

def schemes() -> list[_Scheme]: ...
def workloads() -> list[dict[str, str | float]]: ...
def pyrrha_resources(k: int) -> dict[str, int]: ...
def harmony_queue_max(switches: int, k: int, packet_bytes: int) -> int: ...
def harmony_queueing_delay_max(switches: int, k: int, packet_bytes: int, rate_bps: int) -> int: ...
def harmony_k_star(buffer_bytes: int, ports: int, switches: int, packet_bytes: int) -> int: ...
def harmony_slot_efficiency(k: int, cores: int) -> float: ...
def harmony_message_delay_max(
    wire_bytes: int,
    packet_bytes: int,
    slots: int,
    slot_rate_bps: int,
    switches: int,
    unloaded_round_trip_ps: int,
    queueing_ps: int,
    at_each_hop_ps: int,
) -> int: ...
def harmony_allocation(
    k: int, cores: int, leaves: int | None, tries: int, trials: int, seed: int
) -> list[tuple[float, float]]: ...
def harmony_adversary(k: int, switches: int) -> list[tuple[int, int]]: ...
def r2c2_throughput(fabric: str, algorithm: str, pattern: str | None = None) -> float: ...
def r2c2_link_weights(fabric: str, routing: str, src: int, dst: int) -> list[tuple[str, str, float]]: ...
def r2c2_water_filling(
    capacities_gbps: list[float], flows: list[tuple[list[tuple[int, float]], float, int, float]]
) -> list[float]: ...
def r2c2_rates(fabric: str, headroom: float, flows: list[tuple[int, int, str, float, int, float]]) -> list[float]: ...
def r2c2_select(
    fabric: str,
    headroom: float,
    pairs: list[tuple[int, int]],
    routings: list[str],
    current: bytes,
    utility: str,
    settings: str,
    seed: int,
) -> tuple[bytes, float, float, int, int]: ...
def r2c2_recompute_times(
    scenario: Scenario, routing: str, headroom: float, rhos_ps: list[int], step_ps: int, each: int
) -> tuple[list[list[tuple[int, int, int]]], list[tuple[int, int, int, int]]]: ...
def dissector() -> str: ...
def fabric_schema() -> str: ...
def schema() -> str: ...

@final
class Maze:
    def __new__(cls, scenario: Scenario) -> Maze: ...
    @property
    def hosts(self) -> list[str]: ...
    @property
    def classes(self) -> list[tuple[str, str]]: ...
    @property
    def over(self) -> str | None: ...
    def socket(self, host: str, port: int | None = None) -> Socket: ...
    def completions(self) -> Completions: ...
    def close(self, scenario: Scenario, seconds: float) -> _Run | None: ...

@final
class Completions:
    def next(self, seconds: float | None = None) -> Sent: ...

@final
class Socket:
    @property
    def address(self) -> tuple[str, int]: ...
    def send(
        self, host: str, port: int, content: bytes, kind: str | None = None, queue: Completions | None = None
    ) -> Sent: ...
    def receive(self, seconds: float | None = None) -> tuple[int, str, int, str, bytes, int]: ...
    def close(self) -> None: ...

@final
class Sent:
    @property
    def flow(self) -> int: ...
    def wait(self, seconds: float | None = None) -> tuple[int, int, int | None]: ...

def simulate(
    scenario: Scenario,
    threads: int,
    progress: _Progress | None = None,
    memory_bytes_max: int | None = None,
    parts: int | None = None,
    pcap: tuple[dict[str, str], int] | None = None,
) -> tuple[_Run, list[tuple[bytes, bool]]]: ...
def write_job(scenario: Scenario, path: str | PathLike[str], chakra: bool, job: str | None = None) -> list[Path]: ...
def estimate(scenario: Scenario, progress: _Progress | None = None) -> _Run: ...
def live(
    scenario: Scenario, progress: _Progress | None = None, processes: int = 1, command: Sequence[str] = ...
) -> _Run: ...
def live_bench(command: Sequence[str] = ...) -> str: ...
def live_part() -> None: ...
def live_machines(
    scenario: Scenario,
    machines: int,
    listen: str,
    token: str,
    tell: Callable[[str], object],
    progress: _Progress | None = None,
) -> _Run: ...
def live_join(
    address: str, token: str, tell: Callable[[str], object], scenario: Scenario | None = None
) -> tuple[int, int, int, int]: ...
