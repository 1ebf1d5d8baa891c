"""Crates outside of Clearway's tree that `clearway new` writes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from clearway import _core
from clearway.files.whole import replace_folder

TEMPLATE = Path(__file__).parent / "crates" / "transport"
ENTRY = Path("crates/clearway/Cargo.toml")
# Rust's words, the crates that it links, and folders that cargo makes: none of them can be a crate's name.
WORDS = """
    abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen
    if impl in let loop macro match mod move mut override priv proc_macro pub ref return self static struct super
    trait true try type typeof union unsafe unsized use virtual where while yield
    alloc build clearway core deps examples incremental proptest schemars serde std test"""
TAKEN = frozenset(WORDS.split())


def new_transport(name: str, parent: str | Path = ".", source: str | Path | None = None) -> Path:
    """Writes a crate with a transport to start from, as the folder `name` in `parent`, and returns the folder.

    `source` is the folder of Clearway's source, which the crate is built with; by default the tree that this package is
    part of.

    >>> import clearway as cw, tempfile
    >>> crate = cw.new_transport("mine", tempfile.mkdtemp())
    >>> sorted(path.name for path in crate.iterdir())
    ['.gitignore', 'Cargo.lock', 'Cargo.toml', 'README.md', 'scenario.toml', 'src']
    """
    _check_name(name)
    folder = Path(parent) / name
    if folder.is_symlink() or folder.exists():
        _taken(folder)
    tree = _tree(source)
    if not folder.parent.is_dir():
        raise NotADirectoryError(f"{folder.parent} is not a folder; make it first, or choose another")
    try:
        replace_folder(folder, lambda part: _write(part, name, tree), _taken)
    except OSError as error:
        if not error.strerror:
            raise
        raise type(error)(f"{folder} cannot be made: {error.strerror}; choose another folder") from None
    return folder


def _taken(folder: Path) -> None:
    raise FileExistsError(f"{folder} exists already; choose another name, or another folder for it")


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        raise ValueError(
            f"{name!r} can't be the name of a transport: it begins with a small letter, and has small letters, digits "
            "and underscores, at most 64"
        )
    known = {str(row["name"]) for row in _core.schemes()}
    if name in known:
        raise ValueError(f"{name!r} is one of Clearway's own schemes; choose another name")
    if name in TAKEN:
        raise ValueError(f"{name!r} can't be the name of a crate: it has a meaning in Rust; choose another name")


def _tree(source: str | Path | None) -> Path:
    """The folder of Clearway's source, absolute, so that the crate may be moved."""
    tree = Path(__file__).resolve().parents[3] if source is None else Path(source).resolve()
    how = f"git clone https://github.com/clearway/clearway && git -C clearway checkout {_core.COMMIT}"
    if not (tree / ENTRY).is_file():
        if source is None:
            raise FileNotFoundError(
                "a crate is built with Clearway's source, and this Clearway was installed without it; get it by "
                f"`{how}`, and name its folder by --source"
            )
        raise FileNotFoundError(f"{source} is not the folder of Clearway's source: there is no {tree / ENTRY}; {how}")
    version = re.search(r'^version = "(.*)"', (tree / "Cargo.toml").read_text(encoding="utf-8"), re.M)
    if version is None or version[1] != _core.__version__:
        there = "unknown" if version is None else version[1]
        raise ValueError(
            f"{tree} is the source of Clearway {there}, and this is {_core.__version__}: commands would refuse the "
            f"crate; get the same one by `{how}`"
        )
    return tree


def _write(folder: Path, name: str, tree: Path) -> None:
    for template in sorted(path for path in TEMPLATE.rglob("*") if path.is_file()):
        place = template.relative_to(TEMPLATE)
        file = folder / (".gitignore" if place.name == "gitignore" else place)
        file.parent.mkdir(exist_ok=True)
        text = re.sub(r"\bmine\b", name, template.read_text(encoding="utf-8"))
        quoted = str(tree).replace("\\", "\\\\").replace('"', '\\"')
        file.write_text(text.replace("CLEARWAY", quoted) if place.name == "Cargo.toml" else text, encoding="utf-8")
    # The same versions of everything as Clearway's: the same results.
    shutil.copyfile(tree / "Cargo.lock", folder / "Cargo.lock")
