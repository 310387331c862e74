"""Where the queue is: an option, then the environment, then a TOML file.

The file is the nearest ``laneway.toml``, or ``pyproject.toml`` with a ``[tool.laneway]`` table,
from the current folder upwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laneway.errors import InvalidOption

_KNOWN: Mapping[str, type] = {"url": str, "schema": str, "queue": str, "pooler": bool}


@dataclass(frozen=True, slots=True)
class Config:
    url: str | None = field(default=None, repr=False)  # it may contain a password
    schema: str = "laneway"
    queue: str = "default"
    pooler: bool = False


def read_config(start: Path | None = None) -> Config:
    """Reads the nearest file; returns the defaults if there is none."""
    folder = (start or Path.cwd()).resolve()
    for place in (folder, *folder.parents):
        for name, path in (("laneway.toml", ()), ("pyproject.toml", ("tool", "laneway"))):
            table = _table(place / name, path)
            if table is not None:
                return _checked(table, place / name)
    return Config()


def _table(file: Path, path: tuple[str, ...]) -> Mapping[str, Any] | None:
    import tomllib

    try:
        content: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    except OSError as error:
        raise InvalidOption(
            f"{file} cannot be read: {error.strerror}; rename or remove it"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidOption(f"{file} is not valid TOML: {error}") from None
    for key in path:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content if isinstance(content, Mapping) else None


def _checked(table: Mapping[str, Any], file: Path) -> Config:
    # Values are not shown: the URL may contain a password.
    for key, value in table.items():
        if key not in _KNOWN:
            raise InvalidOption(f"{file}: unknown key {key!r}; use {', '.join(_KNOWN)}")
        if type(value) is not _KNOWN[key]:
            raise InvalidOption(f"{file}: {key} must be {_KNOWN[key].__name__}")
    return Config(**table)
