"""``python -m tests.django_suites``: the published tests of Django's tasks and of django-tasks-db
against Laneway's backend. Both sdists are downloaded into a temporary directory; of Django's tests
the names of the backends are replaced there, and nothing is kept."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SDISTS = ("django>=6.1,<6.2", "django-tasks-db==0.13.0")
NAMES = ("python3.14", "python3.13", "python3.12", "python3")
REPLACED = {
    "SimpleTestCase": "TransactionTestCase",
    "django.tasks.backends.dummy.DummyBackend": "tests.django_suites.backends.CountedBackend",
    "from django.tasks.backends.dummy import DummyBackend": (
        "from tests.django_suites.backends import CountedBackend as DummyBackend"
    ),
    "django.tasks.backends.immediate.ImmediateBackend": (
        "tests.django_suites.backends.RunningBackend"
    ),
    "from django.tasks.backends.immediate import ImmediateBackend": (
        "from tests.django_suites.backends import RunningBackend as ImmediateBackend"
    ),
}


def main() -> None:
    with TemporaryDirectory() as folder:
        home = Path(folder)
        python = installed(home)
        for sdist in SDISTS:
            run(python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
                "--no-build-isolation", "-d", str(home), sdist)  # fmt: skip
        for archive in home.glob("*.tar.gz"):
            with tarfile.open(archive) as opened:
                opened.extractall(home, filter="data")
        suites = home / "suites"
        copy_django(next(home.glob("[dD]jango-*/tests/tasks")), suites / "tasks")
        (theirs,) = home.glob("django_tasks_db-*/")
        paths = {
            "django": (suites, HERE / "stand_in", ROOT),
            "tasks_db": (HERE / "stand_in", theirs, ROOT),
        }
        shutil.rmtree(theirs / "django_tasks_db")  # the stand-in is what is tested
        chosen = sys.argv[1:] or list(paths)
        failed = [name for name in chosen if not passes(python, home, name, paths[name])]
        sys.exit(f"failed: {', '.join(failed)}" if failed else None)


def installed(home: Path) -> str:
    """A Python that Django 6 runs on, with what the suites need."""
    found = new_enough()
    if found is None:
        sys.exit("Django 6 needs Python 3.12 or newer, and there is none on PATH or of pyenv's")
    run(found, "-m", "venv", str(home / "venv"))
    python = str(home / "venv" / "bin" / "python")
    run(python, "-m", "pip", "install", "-q", "setuptools", "wheel", "typing_extensions",
        "django-stubs-ext", SDISTS[0], f"{ROOT}[sqlite]")  # fmt: skip
    return python


def new_enough() -> str | None:
    """The first that really runs: a name on PATH may be an empty version-manager shim."""
    pyenv = Path(os.environ.get("PYENV_ROOT", ""), "versions").glob("3.1[2-9]*/bin/python")
    named = [path for name in NAMES if (path := shutil.which(name))]
    check = "import sys; sys.exit(sys.version_info < (3, 12))"
    for candidate in (*named, *sorted((str(path) for path in pyenv), reverse=True)):
        if not subprocess.run([candidate, "-c", check], capture_output=True).returncode:
            return candidate
    return None


def copy_django(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    for file in target.glob("test_*.py"):
        if file.name != "test_custom_backend.py":
            text = file.read_text()
            # Longest first: one may be part of another.
            for old, new in sorted(REPLACED.items(), key=lambda pair: -len(pair[0])):
                text = text.replace(old, new)
            file.write_text(text)


def passes(python: str, home: Path, name: str, paths: tuple[Path, ...]) -> bool:
    sys.stdout.write(f"\n{name}:\n")
    sys.stdout.flush()
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(path) for path in paths),
        "SUITE_DATABASE": str(home / f"{name}.sqlite3"),
    }
    command = [python, "-m", "tests.django_suites.run_suite", name]
    return not subprocess.run(command, env=variables, cwd=home).returncode


def run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
