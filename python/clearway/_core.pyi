"""What the package needs of Rust. Its users find it in more comfortable form in `clearway`."""

from collections.abc import Callable
from os import PathLike
from typing import TypeAlias, final

__all__ = [
    "COMMIT",
    "Scenario",
    "__version__",
    "fabric_schema",
    "live",
    "pyrrha_resources",
    "schema",
    "schemes",
    "simulate",
    "workloads",
]

__version__: str
COMMIT: str

_Column: TypeAlias = tuple[str, str, str, str, bytes, list[str]]
_Run: TypeAlias = tuple[str, str, list[tuple[str, list[_Column]]]]
_Progress: TypeAlias = Callable[[int, int, int, int], object]

@final
class Scenario:
    @staticmethod
    def parse(
        text: str, name: str, folder: str | PathLike[str], sets: list[tuple[str, str]]
    ) -> Scenario: ...
    def with_sets(self, sets: list[tuple[str, str]]) -> Scenario: ...
    def to_toml(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def transports(self) -> list[str]: ...
    def check(self) -> tuple[int, int]: ...

def schemes() -> list[dict[str, str]]: ...
def workloads() -> list[dict[str, str | float]]: ...
def pyrrha_resources(k: int) -> dict[str, int]: ...
def fabric_schema() -> str: ...
def schema() -> str: ...
def simulate(scenario: Scenario, threads: int, progress: _Progress | None = None) -> _Run: ...
def live(scenario: Scenario, progress: _Progress | None = None) -> _Run: ...
