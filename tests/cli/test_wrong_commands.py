"""What a new user mistypes in a shell: what the commands answer, and with which exit code.

One table for the shell; tests/client/test_wrong_calls.py has that of Python.
"""

# ruff: noqa: E501

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from laneway import Queue
from laneway.cli.app import app
from laneway.cli.exits import in_shell

# fmt: off
_JOBS = """
import os
from laneway import Queue, Worker
queue = Queue(os.environ["DATABASE_URL"])
worker = Worker(queue)

@worker.task(queue="emails")
def greet(name: str) -> None: ...
"""
_OPENING = "import os\nfrom laneway import Queue, Worker\nqueue = Queue(os.environ['DATABASE_URL'])\n"
FILES = {
    "jobs.py": _JOBS,
    "shop/__init__.py": "",
    "shop/jobs.py": _JOBS,
    "empty.py": "",
    "number.py": "worker = 7\n",
    "syntax.py": "def x(:\n",
    "lacks.py": "import nonexisting\n",
    "option.py": _OPENING + "worker = Worker(queue, concurency=5)\n",
    "zero.py": _OPENING + "worker = Worker(queue, concurrency=0)\n",
    "boom.py": "def load():\n    raise RuntimeError('no settings')\nload()\n",
    "unset.py": "import os\nfrom laneway import Queue, Worker\nworker = Worker(Queue(os.environ.get('UNSET')))\n",
    "needs.py": "import os\nos.environ['OTHER_URL']\n",
    "nohandler.py": _OPENING + "worker = Worker(queue)\n",
    "twice.py": _OPENING + "a = Worker(queue)\nb = Worker(Queue('sqlite:///two.db'))\n",
}
MODULES: list[tuple[str, int, str]] = [
    ("jobs.py", 2, "jobs.py is not a module: write jobs"),
    ("./jobs.py", 2, "./jobs.py is not a module: write jobs"),
    ("shop/jobs.py", 2, "shop/jobs.py is not a module: write shop.jobs"),
    ("shop/jobs", 2, "shop/jobs is not a module: write shop.jobs"),
    ("./shop/jobs.py:worker", 2, "./shop/jobs.py is not a module: write shop.jobs:worker"),
    ("{here}/shop/jobs.py", 2, "/shop/jobs.py is not a module: write shop.jobs"),
    ("../elsewhere/jobs.py", 2, "is not a module: in the folder ../elsewhere write jobs"),
    ("nojobs.py", 2, "there is no file nojobs.py: did you mean 'jobs'?"),
    ("nowhere/x.py", 2, "there is no file nowhere/x.py: write a module's name, such as shop.jobs"),
    (".", 2, ". is not a module: write its name, such as jobs or shop.jobs"),
    ("jobs.worker", 2, "'worker' is not a module: write jobs:worker"),
    ("jbos", 2, "no module 'jbos' in the current folder or installed: did you mean 'jobs'?"),
    ("shop.jbos", 2, "no module 'shop.jbos' in the current folder or installed: did you mean 'shop.jobs'?"),
    ("zzz", 2, "no module 'zzz' in the current folder or installed: check the name"),
    ("jobs:wroker", 2, "module 'jobs' has no 'wroker': use jobs:worker"),
    ("jobs:queue", 2, "jobs:queue is of type Queue, not a Worker: use jobs:worker"),
    ("jobs:", 2, "'jobs:' does not name a worker: write module:worker"),
    ("empty", 2, "module 'empty' has no Worker and no Tasks: define one"),
    ("number:worker", 2, "number:worker is of type int, not a Worker: define one"),
    ("queue", 2, "queue.py) has no Worker and no Tasks"),
    ("syntax", 1, "syntax.py, line 1: invalid syntax"),
    ("lacks", 1, "lacks.py, line 1: no module 'nonexisting': is it installed in this environment?"),
    ("option", 1, "option.py, line 4: Worker() has no option concurency=: write concurrency="),
    ("zero", 2, "zero.py, line 4: concurrency is 0: it must be between 1 and 10000"),
    ("unset", 2, "unset.py, line 3: None is not a database URL: is the environment variable"),
    ("needs", 2, "module 'needs' needs the environment variable OTHER_URL: export it first"),
    ("nohandler", 1, "the worker has no handler"),
    ("twice", 2, "the workers are for different databases or schemas"),
]
COMMANDS: list[tuple[list[str], int, str]] = [
    (["pubish"], 2, "no such command 'pubish': did you mean 'publish'?"),
    (["enqueue"], 2, "no such command 'enqueue': did you mean 'publish'?"),
    (["run", "jobs"], 2, "no such command 'run': did you mean 'worker'?"),
    (["start", "jobs"], 2, "no such command 'start': did you mean 'worker'?"),
    (["status"], 2, "no such command 'status': did you mean 'stats'?"),
    (["migrate"], 2, "no such command 'migrate': did you mean 'install'?"),
    (["zzz"], 2, "no such command 'zzz'; see laneway --help"),
    (["dead", "retry", "1"], 2, "no such command 'retry': did you mean 'redrive'?"),
    (["dead", "delete", "1"], 2, "no such command 'delete': did you mean 'discard'?"),
    (["channels", "limt"], 2, "no such command 'limt': did you mean 'limit'?"),
    (["dev", "postgres"], 2, "no such command 'postgres': did you mean 'postgresql'?"),
    (["publish", "{}", "--chanel", "a"], 2, "no such option: --chanel: did you mean --channel?"),
    (["publish", "{}", "--tenant", "a"], 2, "no such option: --tenant: did you mean --channel?"),
    (["publish", "{}", "--eta", "1h"], 2, "no such option: --eta: did you mean --at?"),
    (["stats", "--zzz"], 2, "no such option: --zzz; see laneway stats --help"),
    (["--hepl"], 2, "no such option: --hepl: did you mean --help?"),
    (["--url", "sqlite:///a.db", "stats"], 2, "no such option: --url: write options after the command"),
    (["stats", "extra"], 2, "got more than it takes: extra; see laneway stats --help"),
    (["worker"], 2, "missing argument 'MODULE[:NAME]...'; see laneway worker --help"),
    (["worker", "jobs", "--concurrency", "0"], 2, "--concurrency: it must be at least 1; see laneway worker --help"),
    (["worker", "jobs", "--concurrency", "x"], 2, "--concurrency: it must be a whole number"),
    (["worker", "jobs", "--health-host", "0.0.0.0"], 2, "--health-host needs --health-port"),
    (["show", "abc"], 2, "ID: it must be a whole number"),
    (["messages", "--state", "runing"], 2, "--state: 'runing' is not one of 'waiting', "),
    (["publish", "{}", "--priority", "500"], 2, "--priority: it must be at most 200"),
    (["publish", "{}", "--key", "a", "--on-duplicate", "x"], 2, "--on-duplicate: 'x' is not one of 'keep', "),
    (["publish", "{}", "--key", "a", "--on-duplicate", "debounce"], 2, "--on-duplicate debounce moves the due time"),
    (["publish", "{}", "--key", "a", "--debounce-for", "5m"], 2, "--debounce-for belongs to --on-duplicate debounce"),
    (["publish", "{}", "--keep-result", "90000d"], 2, "--keep-result is 90000 days"),
    (["publish", "{}", "--schema", "nope"], 1, "or an older version is: run laneway install; if a part"),
    (["publish", "{}", "--url", "sqlite:///none.db"], 2, "none.db does not exist: create it with laneway install"),
    (["upgrade", "--url", "sqlite:///none.db"], 2, "none.db does not exist: create it with laneway install"),
    (["stats", "--url", "shop.db"], 2, "for a file write sqlite:///shop.db"),
    (["stats", "--url", "host=db dbname=shop"], 2, "write it as postgresql://db/shop"),
    (["stats", "--url", "postgresq://db/shop"], 2, "did you mean postgresql://?"),
    (["stats", "--url", "postgresql://a:***@db/shop"], 2, "is ***: write the password itself"),
    (["channels", "limit", "a"], 2, "no limit was given: use --concurrency, --rate, "),
    (["channels", "limit", "a", "--rate", "0"], 2, "--rate 0 would start nothing: use laneway channels pause"),
    (["channels", "limit", "a", "--rate", "fast"], 2, "--rate: 'fast' is not a number: write digits, or none"),
    (["shared-limits", "--rate", "5"], 2, "which limit? Write its name, as in laneway shared-limits stripe"),
    (["shared-limits", "a", "--adapt-min", "5"], 2, "--adapt-min needs --adapt-max"),
    (["shared-limits", "a", "--failures", "50"], 2, "--failures: it must be at most 1"),
    (["fairness", "--by", "fifo"], 2, "a queue is fair by \"starts\" or by \"time\", not by 'fifo'"),
    (["fairness", "--by", "starts", "--turn", "1s"], 2, "turn is for --by time"),
    (["schedules", "run", "nigthly"], 3, "no schedule 'nigthly': perhaps 'nightly' is meant"),
    (["flows", "list", "--state", "runing"], 2, "state is 'runing': use running, dead, "),
    (["result", "1"], 1, "its result is not kept: publish it with --keep-result, and ask before"),
    (["result", "999"], 1, "message 999 is not known"),
]
TOML: list[tuple[str, str]] = [
    ('ulr = "x"', "unknown key 'ulr': did you mean 'url'?"),
    ("url = 5", "url must be text in quotes"),
    ('url = "x', "is not valid TOML"),
]
# fmt: on


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with Queue(f"sqlite:///{folder}/shop.db") as queue:
        queue.install()
        queue.schedule("nightly", every=3600)
        queue.publish(1)
        queue.claim()[0].complete()
    return folder


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """As in a new shell in this folder: no module of it was imported before."""
    for name in ("LANEWAY_SCHEMA", "LANEWAY_QUEUE", "OTHER_URL", "UNSET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABASE_URL", "sqlite:///shop.db")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    importlib.invalidate_caches()
    yield folder
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def told(*words: str, code: int) -> str:
    """What a command says on stderr: one sentence, and no advice in Python."""
    done = CliRunner().invoke(app, list(words), prog_name="laneway")
    assert done.exit_code == code, (done.output, done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.stderr.startswith("laneway: ") and done.stderr.count("\n") == 1, done.stderr
    assert not re.search(r"\w\.(install|upgrade|list)\(\)|Traceback", done.stderr)
    return done.stderr


@pytest.mark.parametrize(("module", "code", "says"), MODULES)
def test_a_module_that_cannot_be_run(here: Path, module: str, code: int, says: str) -> None:
    assert says in told("worker", module.format(here=here), "--check", code=code)


@pytest.mark.parametrize(("words", "code", "says"), COMMANDS)
def test_a_wrong_command(here: Path, words: list[str], code: int, says: str) -> None:
    assert says in told(*words, code=code)
    assert not (here / "none.db").exists()


@pytest.mark.parametrize(("text", "says"), TOML)
def test_a_wrong_file_of_settings(here: Path, text: str, says: str) -> None:
    (here / "laneway.toml").write_text(text)
    try:
        assert says in told("stats", code=2)
    finally:
        (here / "laneway.toml").unlink()


def test_a_module_that_raises_shows_its_own_frames_only(here: Path) -> None:
    done = CliRunner().invoke(app, ["worker", "boom"], prog_name="laneway")
    lines = done.stderr.splitlines()
    assert done.exit_code == 1
    assert lines[-1] == "laneway: module 'boom' cannot be imported: RuntimeError: no settings"
    frames = [line for line in lines if line.startswith("  File ")]
    assert len(frames) == 2 and all("boom.py" in frame for frame in frames)


def test_what_the_library_says_to_programs() -> None:
    found = get_command(app)
    ctx = found.make_context("laneway", ["stats"])
    for said, in_a_shell in (
        ("publish it with keep_result=, and ask", "publish it with --keep-result, and ask"),
        ('turn is for by="time"', "turn is for --by time"),
        ("give a health_port too", "give a --health-port too"),
        (
            "not installed: run queue.install() or laneway install",
            "not installed: run laneway install",
        ),
        ("no connection to host=db", "no connection to host=db"),
        ("queue 'keep_result' is unknown", "queue 'keep_result' is unknown"),
    ):
        assert in_shell(said, ctx) == in_a_shell


def _groups(command: Any, path: list[str]) -> Iterator[list[str]]:
    if hasattr(command, "commands"):
        yield path
        for name, below in command.commands.items():
            yield from _groups(below, [*path, name])


@pytest.mark.parametrize("path", list(_groups(get_command(app), [])))
def test_no_summary_is_cut_off(path: list[str]) -> None:
    done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    listed = done.stdout.partition("\n")[2]
    assert "..." not in listed, listed
