"""A reader who does what a page says, block after block, in an empty folder of their own."""

import code
import configparser
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Self

import psutil
import psycopg
import yaml

from laneway.dev.embedded import EmbeddedPostgres
from tests.docs.pages import PYTHON, SHELL, Block, blocks

_SECONDS = 100  # for one shell block
_IDLE = 0.1  # seconds of processor time in a while
# Run by the shell after a block, so that an `export` holds for the blocks that follow.
_KEEP_ENVIRONMENT = "trap 'env -0 > .environment' EXIT\n"
_NOT_KEPT = ("_", "SHLVL", "PWD", "OLDPWD")


class Reader:
    """Python blocks share one namespace, shell blocks one environment, and both one folder.

    ``DATABASE_URL`` is the address of an empty database on the test server; a page that wants
    SQLite says so in its own ``url``.
    """

    def __init__(self, folder: Path, url: str, *, paste: bool = False) -> None:
        self._folder = folder
        self._url = url
        self._started: list[tuple[Block, subprocess.Popen[bytes]]] = []
        self._names: dict[str, object] = {"__name__": "__main__"}  # as for a script
        self._console = _Console(self._names) if paste else None

    def __enter__(self) -> Self:
        self._before = dict(os.environ), os.getcwd()
        os.environ["DATABASE_URL"] = self._url
        programs = Path(sys.executable).parent
        os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
        os.environ["PYTHONPATH"] = str(self._folder)
        os.chdir(self._folder)
        sys.path.insert(0, str(self._folder))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        codes = [(block, _stop(process)) for block, process in self._started]
        environment, folder = self._before
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path.remove(str(self._folder))
        for name in [name for name, module in sys.modules.items() if self._is_ours(module)]:
            del sys.modules[name]
        for value in {id(value): value for value in self._names.values()}.values():
            if type(value).__name__ in ("Queue", "Connection", "Engine"):
                getattr(value, "close", getattr(value, "dispose", None))()  # type: ignore[misc]
        if error is None:
            for block, exit_code in codes:
                assert exit_code in (0, 130, -signal.SIGINT), f"{block} ended with {exit_code}"

    def _is_ours(self, module: ModuleType) -> bool:
        return str(getattr(module, "__file__", None) or "").startswith(str(self._folder))

    def run(self, block: Block) -> None:
        if block.not_run or block.language == "text" or block.on_mariadb:
            return
        if block.file:
            file = self._folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.code)
        if block.language in PYTHON and not block.file:
            self._python(block)
        elif block.language in SHELL:
            self._shell(block)
        elif block.language == "sql":
            self._sql(block)
        else:
            _parse(block)

    def _python(self, block: Block) -> None:
        if self._console is not None:
            self._console.paste(block)
        else:
            exec(_compiled(block), self._names)

    def _shell(self, block: Block) -> None:
        commands = block.code
        if block.language == "console":
            lines = block.code.splitlines()
            commands = "\n".join(line[2:] for line in lines if line.startswith("$ "))
        if block.until_stopped:
            shell = ["bash", "-c", commands]
            self._started.append((block, subprocess.Popen(shell, start_new_session=True)))
            return
        script = f"{_KEEP_ENVIRONMENT}{'set -e' if block.exit_codes == (0,) else ''}\n{commands}"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        sys.stdout.write(done.stdout)
        assert done.returncode in block.exit_codes, f"{block}: {done.returncode}\n{done.stdout}"
        assert "No such option" not in done.stdout, f"{block}\n{done.stdout}"
        if block.language == "console":
            _check_printed(block, done.stdout)
        kept = (self._folder / ".environment").read_text().split("\0")
        pairs = [pair.partition("=") for pair in kept if pair]
        os.environ.update({name: value for name, _, value in pairs if name not in _NOT_KEPT})

    def _sql(self, block: Block) -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute(block.code.encode())


def _check_printed(block: Block, printed: str) -> None:
    """The lines of a console block that are no command are its output; "…" is any text."""
    shown = [line for line in block.code.splitlines() if line and not line.startswith("$ ")]
    pattern = "\n".join(".*".join(re.escape(part) for part in line.split("…")) for line in shown)
    assert not shown or re.search(pattern, printed), f"{block} shows other output:\n{printed}"


def read(page: str, server: EmbeddedPostgres, folder: Path, *, paste: bool = False) -> None:
    """Runs all blocks of a page, on a new database of this server."""
    name = re.sub(r"\W", "_", page).lower() + ("_pasted" if paste else "")
    with Reader(folder, server.create_database(name), paste=paste) as reader:
        for block in blocks(page):
            reader.run(block)


class _Console(code.InteractiveConsole):
    """The interactive interpreter, into which blocks are pasted line by line."""

    def __init__(self, names: dict[str, object]) -> None:
        super().__init__(names)
        self._errors: list[str] = []

    def paste(self, block: Block) -> None:
        for line in block.code.splitlines():
            self.push(line)
            assert not self._errors, f"{block}, at {line!r}:\n{''.join(self._errors)}"
        self.push("")  # Enter, which ends what is indented
        assert not self._errors and not self.buffer, f"{block}: {''.join(self._errors)}"

    def write(self, data: str) -> None:
        self._errors.append(data)


def _compiled(block: Block) -> CodeType:
    """With the page's own line numbers in tracebacks."""
    return compile("\n" * block.line + block.code, block.page, "exec")


def _parse(block: Block) -> None:
    match block.language:
        case "toml":
            tomllib.loads(block.code)
        case "json":
            json.loads(block.code)
        case "yaml":
            assert list(yaml.safe_load_all(block.code))
        case "ini":
            configparser.ConfigParser(interpolation=None, strict=False).read_string(block.code)
        case "python":
            _compiled(block)
        case _:
            raise AssertionError(f"{block}: what is {block.language!r}?")


def _wait_until_idle(process: "subprocess.Popen[bytes]") -> None:
    """Starting costs processor time; once a command takes none, it has started."""
    used, deadline = -1.0, time.monotonic() + _SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        now = 0.0
        with suppress(psutil.NoSuchProcess):
            whole = psutil.Process(process.pid)
            for one in (whole, *whole.children(recursive=True)):
                now += sum(one.cpu_times()[:2])
        if now and now - used < _IDLE:
            return
        used = now
        time.sleep(1.5)


def _stop(process: "subprocess.Popen[bytes]") -> int:
    """As Ctrl-C in a terminal does it: a signal to all processes of the command."""
    _wait_until_idle(process)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    try:
        return process.wait(60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
