"""Names of code on pages: files and functions that a page gives in backticks are in the tree."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = ROOT / "crates"
PAGES = sorted((ROOT / "docs/schemes").glob("*.md"))
COLUMNS = ("where", "here", "code", "the code")
# The modules that a page's short names stand in, where that is not the one that it is called after.
FOLDERS = {
    "aq": ["sharing/src/aq", "contract/src/sharing"],
    "flow-control": ["link-control/src", "node/src/flow_queues"],
    "limiters": ["sharing/src/limiter"],
    "link-layer": ["link-control/src"],
    "ndp": ["transports/src/ndp", "transports/src/trimming"],
}
OTHERS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
NAMES_FILES = [*OTHERS, *ROOT.glob("docs/**/*.md"), *ROOT.glob("papers/*/*.md")]


@cache
def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def sources(folder: Path) -> tuple[Path, ...]:
    """The Rust files of a module: `x.rs` and all below `x/`; or those of a folder."""
    own = [folder.with_suffix(".rs")] if folder.with_suffix(".rs").is_file() else []
    return (*own, *sorted(folder.rglob("*.rs")))


def of_page(page: str) -> tuple[Path, ...]:
    """The files of a page's schemes."""
    folders = FOLDERS.get(page) or [f"{room}/src/{page}" for room in ("transports", "link-control", "sharing")]
    return tuple(path for folder in folders for path in sources(CRATES / folder))


@cache
def everything() -> tuple[Path, ...]:
    return tuple(path for crate in sorted(CRATES.iterdir()) for path in sources(crate / "src"))


def members(kind: str, text: str) -> str:
    """The text of the declaration of a type and of its `impl` blocks; empty if the file has none."""
    keyword = r"(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|union|impl\b[^{;]*?\b)"
    heads = rf"^( *){keyword} ?{kind}\b[^{{;]*(?:;|\{{\}}|\{{.*?^\1\}})"
    return "\n".join(found[0] for found in re.finditer(heads, text, re.M | re.S))


def declares(name: str, text: str) -> bool:
    """Whether a file declares a function, a type, a constant, a field or a variant of this name."""
    keyword = rf"\b(?:fn|struct|enum|trait|type|mod|const|static) {name}\b"
    return re.search(rf"{keyword}|^ *(?:pub(?:\([^)]*\))? )?{name}(?:: |,$|\(.*\),$| \{{| = )", text, re.M) is not None


def is_known(name: str, own: tuple[Path, ...]) -> bool:
    """Whether a name in backticks is a file of the page's schemes, or something that they or others declare."""
    if name.endswith(".rs"):
        return any(str(path).endswith(f"/{name}") for path in own) or (CRATES / name).is_file()
    if name.endswith("/"):
        return any(f"/{name}" in str(path) for path in own)
    *kinds, last = name.split("::")
    if not kinds:
        return any(declares(last, source(path)) for path in own)
    kind = kinds[-1]
    if kind.islower():
        return any(declares(last, source(path)) for path in everything())
    at_home = [text for path in own if (text := members(kind, source(path)))]
    texts = at_home or [text for path in everything() if (text := members(kind, source(path)))]
    return any(declares(last, text) for text in texts)


def tables(page: Path) -> Iterator[tuple[int, str]]:
    """The cells that say where something is, with the numbers of their lines."""
    column = None
    for number, line in enumerate(source(page).split("\n"), 1):
        if not line.startswith("|"):
            column = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if column is None:
            column = next((place for place, cell in enumerate(cells) if cell in COLUMNS), len(cells))
        elif column < len(cells):
            yield number, cells[column]


def names(page: Path) -> list[tuple[int, str]]:
    """Files and declarations that the page names, with their lines. Settings and commands are left out."""
    pattern = r"`((?:\w+::)*\w+|[\w/-]+(?:\.rs|/))`"
    return [(number, found) for number, cell in tables(page) for found in re.findall(pattern, cell)]


@pytest.mark.parametrize("page", [page for page in PAGES if names(page)], ids=lambda page: page.stem)
def test_tables_of_where_a_term_is_name_what_exists(page: Path) -> None:
    own = of_page(page.stem)
    if not own:
        pytest.skip("no table of this page is about code")
    missing = [f"{page.name}:{number}: {name}" for number, name in names(page) if not is_known(name, own)]
    assert not missing, missing


def test_a_name_that_is_gone_is_found() -> None:
    own = of_page("dcpim")
    assert is_known("receiver.rs", own)
    assert is_known("Receiver::request", own)
    assert is_known("Packet::virtual_delay_ns", own)
    assert not is_known("terms.rs", own)
    assert not is_known("Terms::stage_at", own)
    assert not is_known("Receiver::ask", own)
    assert not is_known("homa/receiver.rs", own)


def test_paths_on_pages_lead_to_files() -> None:
    """Paths with a folder, as `run/src/host.rs`, are the end of a path in the tree; NAME stands for any name."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    tree = "".join(f"/{file}\n" for file in files if (ROOT / file).is_file())
    missing = []
    for page in NAMES_FILES:
        for number, line in enumerate(source(page).split("\n"), 1):
            for name in re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.(?:rs|py|mjs))`", line):
                end = re.escape(f"/{name}\n").replace("NAME", r"\w+")
                if not re.search(end, tree):
                    missing.append(f"{page.relative_to(ROOT)}:{number}: {name}")
    assert not missing, missing
