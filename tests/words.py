"""Counts turns of phrase that make a reader stop, in comments and pages: `python tests/words.py [--list]`.

The exit status is 1 if a kind of file has more of them than CEILINGS allows. A ceiling only falls: lower it when you
have rewritten some. Rewrite the whole sentence with a concrete subject; to swap one word for another helps nobody.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# Each is a pattern within one sentence, and an example of a better sentence.
BANNED = {
    "What ...": (r"^What (?!if\b)[^?]*$", "A description that opens with What: name the thing instead."),
    "somebody": (r"(?i)\b(somebody|anybody|nobody|whoever)\b", "Name the reader, the user, the host, the sender."),
    "so many": (r"\bso (many|long|much|often|few)\b(?! (as|that|flows)\b)", "Give the number, or say `that many`."),
    "who does": (r"\bwho does\b(?! not)", "Name the actor."),
    "goes over": (r"\bgoes? over\b", "A packet crosses a link; an index visits items."),
    "a row a packet": (
        r"\b[Aa]n? \w+ an? (packet|flow|message|rank|run|change|event|word|link|host|line|class|file|scheme|seed)\b",
        "One row per packet.",
    ),
    "what is left of": (r"\bwhat is left of\b", "The rest of ..., the remaining ..."),
}
# The most of them that each kind of file may have.
CEILINGS = {"pages": 0, "python": 19, "scripts": 19, "rust": 1123}
SUFFIXES = {".md": "pages", ".py": "python", ".pyi": "python", ".js": "scripts", ".mjs": "scripts", ".rs": "rust"}
# Written from Rust's comments, or by a command from its records.
GENERATED = ("docs/keys/", "docs/commands.md", "docs/accuracy.md")
RUST_COMMENT = re.compile(r"^\s*//[/!]? ?(.*)$|[;{},)]\s+// (.*)$")
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1[ \t]*$", re.M | re.S)


def pages(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs of Markdown, without code, with their first lines."""
    plain = FENCE.sub(lambda code: "\n" * code[0].count("\n"), text)
    plain = re.sub(r"`[^`\n]*`", "code", plain)
    # A heading is a label.
    plain = re.sub(r"^#+ .*$", "", plain, flags=re.M)
    yield from _blocks((number, line) for number, line in enumerate(plain.split("\n"), 1))


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Comments of Rust or JavaScript; lines that follow each other are one text."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        comment = RUST_COMMENT.search(line)
        found.append((number, (comment[1] or comment[2] or "") if comment else ""))
    yield from _blocks(found)


def strings(text: str) -> Iterator[tuple[int, str]]:
    """Comments, docstrings and texts of Python."""
    lines: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            # A comment behind code is its own text.
            if token.line[: token.start[1]].strip():
                lines.append((token.start[0], ""))
            lines.append((token.start[0], token.string.lstrip("#: ")))
        elif token.type == tokenize.STRING:
            lines.append((token.start[0], ""))
            words = re.sub(r'^\w*("""|"|\'\'\'|\')|("""|"|\'\'\'|\')$', "", token.string)
            lines += [(token.start[0] + place, line.strip()) for place, line in enumerate(words.split("\n"))]
            lines.append((token.end[0], ""))
        elif token.type not in (tokenize.NL, tokenize.NEWLINE):
            lines.append((token.start[0], ""))
    yield from _blocks(lines)


def _blocks(lines: Iterator[tuple[int, str]] | list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    first, words = 0, ""
    for number, line in [*lines, (0, "")]:
        plain = line.strip()
        if words and (not plain or re.match(r"([-*+|>#]|\d+\.) ?", plain)):
            yield first, words
            words = ""
        if plain:
            first, words = (first, f"{words} {plain}") if words else (number, plain)


def sentences(text: str) -> Iterator[str]:
    """Sentences, headings and cells of a text."""
    for part in re.split(r"(?<=[.!?:])[\s*)]+(?=[A-Z`*\[(])|\s\|\s", text):
        yield re.sub(r"^[-*+|>#\s(\[]+|\s+$", "", part)


READERS = {"pages": pages, "python": strings, "scripts": comments, "rust": comments}


def found(path: Path) -> Iterator[tuple[str, int, str]]:
    """Name of the pattern, line and sentence of each find in a file."""
    for line, text in READERS[SUFFIXES[path.suffix]](path.read_text(encoding="utf-8")):
        for sentence in sentences(text):
            for name, (pattern, _) in BANNED.items():
                for _ in re.finditer(pattern, sentence):
                    yield name, line, sentence


def files() -> list[Path]:
    """Files with words that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    paths = [Path(name) for name in sorted(set(names)) if name and not name.startswith(GENERATED)]
    # This list and its test name the phrases.
    itself = ("words.py", "test_limits.py")
    return [
        path
        for path in paths
        if path.suffix in SUFFIXES and path.is_file() and "seeds" not in path.parts and path.name not in itself
    ]


def main() -> int:
    counts: Counter[str] = Counter()
    for path in files():
        for name, line, sentence in found(path):
            counts[SUFFIXES[path.suffix]] += 1
            if "--list" in sys.argv:
                print(f"{path}:{line}: {name}: {sentence[:200]}")
    over = {kind: most for kind, most in CEILINGS.items() if counts[kind] > most}
    for kind, most in CEILINGS.items():
        print(f"{kind}: {counts[kind]} twisted sentences, {most} are allowed")
    if over:
        print(
            "python tests/words.py --list shows them:",
            *(f"{name}: {advice}" for name, (_, advice) in BANNED.items()),
            sep="\n  ",
        )
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
