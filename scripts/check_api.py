"""What would break the code of those who upgrade: the public names against the last release.

Ends with 1 if there is any.
"""

import subprocess
import sys
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parent.parent


def last_release() -> str | None:
    """The newest tag of a version in the history of this commit."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def breakages(tag: str) -> list[str]:
    options = {"search_paths": ["src"], "resolve_aliases": True}
    old = griffe.load_git("laneway", ref=tag, repo=ROOT, **options)
    new = griffe.load("laneway", search_paths=[ROOT / "src"], resolve_aliases=True)
    return [
        found.explain(griffe.ExplanationStyle.ONE_LINE)
        for found in griffe.find_breaking_changes(old, new)
    ]


def main() -> int:
    tag = last_release()
    if tag is None:
        print("No release yet: nothing can break.")
        return 0
    found = breakages(tag)
    print(*found, sep="\n")
    print(f"{len(found)} breaking changes since {tag}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
