"""A deliberate defect: pieces of the package's text, and what they are replaced by."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import laneway

SOURCE = Path(laneway.__file__).parent
_POSTGRESQL = SOURCE / "engines/postgresql/migrations"
USUAL = "kill,stop,term"


class PatchDoesNotApply(Exception):
    """The code has changed: the mutant must be written anew, or it proves nothing."""


@dataclass(frozen=True)
class Patch:
    """``old`` stands in ``place`` exactly so many ``times``: a file, or one function of a file of
    SQL (``publish.sql#refuse_v1``)."""

    place: str
    old: str
    new: str
    times: int = 1

    @property
    def file(self) -> str:
        return self.place.partition("#")[0]

    def changed(self, text: str) -> str:
        begin, end = self._bounds(text)
        found = text.count(self.old, begin, end)
        if found != self.times:
            raise PatchDoesNotApply(
                f"{self.place}: found {found} times, not {self.times}: {self.old}"
            )
        return text[:begin] + text[begin:end].replace(self.old, self.new) + text[end:]

    def _bounds(self, text: str) -> tuple[int, int]:
        name = self.place.partition("#")[2]
        if not name:
            return 0, len(text)
        begin = text.index(_created(name))
        return begin, text.index("\n$$;", begin)


@dataclass(frozen=True)
class Mutant:
    """``kills``: the rules of the checker of which one must be broken; dying of anything else
    would be an accident. ``faults``: those that bring it to light; poison only where it is needed,
    because what it kills and holds up takes time. ``case``: what chaos cannot see, a case of the
    conformance suite does, which is named here, and ``kills`` is "conformance". ``test``: what both
    see only by luck, a test with a fixed order of steps does, and ``kills`` is "test"."""

    name: str
    kills: frozenset[str]
    patches: Sequence[Patch]
    engine: str = "postgresql"
    faults: str = USUAL
    by_kind: bool = False
    through: str | None = None
    case: str | None = None
    test: str | None = None

    def files(self) -> dict[str, str]:
        """Those that are changed, as they are with the defect."""
        texts: dict[str, str] = {}
        for patch in self.patches:
            text = texts.get(patch.file) or (SOURCE / patch.file).read_text()
            texts[patch.file] = patch.changed(text)
        return texts

    def write(self, folder: Path) -> None:
        """A copy of the package, with the defect."""
        texts = self.files()
        shutil.copytree(SOURCE, folder / "laneway", ignore=shutil.ignore_patterns("__pycache__"))
        for file, text in texts.items():
            (folder / "laneway" / file).write_text(text)


def function(name: str) -> str:
    """Where a function of the PostgreSQL engine is."""
    files = sorted(_POSTGRESQL.rglob("*.sql"))
    (file,) = (file for file in files if _created(name) in file.read_text())
    return f"{file.relative_to(SOURCE)}#{name}"


def _created(name: str) -> str:
    return f'create or replace function "laneway".{name}('


def sql(
    name: str, kills: str, defect_in: str, *pairs: tuple[str, str], faults: str = USUAL
) -> Mutant:
    """A defect in one function of the PostgreSQL engine."""
    return python(name, kills, function(defect_in), *pairs, faults=faults)


def python(
    name: str,
    kills: str,
    place: str,
    *pairs: tuple[str, str],
    engine: str = "postgresql",
    faults: str = USUAL,
    case: str | None = None,
) -> Mutant:
    """A defect in one file, or in one function of it."""
    patches = [Patch(place, old, new) for old, new in pairs]
    return Mutant(name, frozenset(kills.split()), patches, engine, faults, case=case)
