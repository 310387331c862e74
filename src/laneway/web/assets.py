"""Scripts, styles and their licences, from the package."""

from functools import cache
from hashlib import sha256
from pathlib import Path

from .request import WebResponse

FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".LICENSE": "text/plain; charset=utf-8",
}
_A_YEAR = {"cache-control": "public, max-age=31536000, immutable"}


@cache
def _files() -> dict[str, bytes]:
    """Only these can be asked for, whatever the address says."""
    return {
        str(file.relative_to(FOLDER)): file.read_bytes()
        for file in sorted(FOLDER.rglob("*"))
        if file.suffix in _TYPES
    }


@cache
def asset_version() -> str:
    """Changes with any file, and is part of their addresses."""
    return sha256(b"".join(_files().values())).hexdigest()[:12]


def asset(path: str) -> WebResponse:
    """``path`` begins with the version, so that browsers may keep what they got."""
    name = path.partition("/")[2]
    content = _files().get(name)
    if content is None:
        return WebResponse(404, b"There is no such file.", "text/plain")
    headers = dict(_A_YEAR) if path.startswith(asset_version()) else {}
    return WebResponse(200, content, _TYPES[Path(name).suffix], headers)
