"""ARCHITECTURE.md and the package agree on the names of files and folders."""

import re

from tests.docs.pages import ROOT

_PATH = re.compile(r"`([\w./]+(?:/|\.py|\.sql|\.md))`")


def test_what_the_architecture_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rows = [line.strip("| ").split(" | ", 1) for line in text.splitlines() if "` |" in line]
    homes = [path for row in rows for path in _PATH.findall(row[0])]
    assert len(homes) > 20
    package = ROOT / "src" / "laneway"
    lost = [path for path in homes if not (package / path).exists()]
    assert not lost


def test_the_architecture_names_every_part_of_the_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    parts = (ROOT / "src" / "laneway").iterdir()
    names = [part.stem for part in parts if part.suffix == ".py" or (part / "__init__.py").exists()]
    assert len(names) > 20
    missing = [n for n in names if n != "__init__" and not re.search(rf"\b{n}\b", text)]
    assert not missing
