"""Running commands: in this process, in another one, and in a terminal."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from typing import Any, NamedTuple

from typer.testing import CliRunner, Result

COMMAND = [sys.executable, "-m", "laneway.cli"]


class Cli(NamedTuple):
    """Where commands work: they are told by the environment."""

    url: str
    schema: str

    def run(self, *words: str, input: str | bytes | None = None, code: int = 0) -> Result:
        from laneway.cli.app import app

        done = CliRunner().invoke(app, list(words), input=input, env=self.place())
        assert done.exit_code == code, done.output + repr(done.exception)
        return done

    def json(self, *words: str, input: str | bytes | None = None, code: int = 0) -> Any:
        """The objects that a command printed with --json."""
        done = self.run(*words, "--json", input=input, code=code)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def process(self, *words: str, **options: Any) -> "subprocess.Popen[str]":
        """A real process; ends with the test or before."""
        wanted: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(
            [*COMMAND, *words],
            env=self.environment(),
            text=True,
            **(wanted | options),
        )

    def terminal(
        self, *words: str, answer: str = "", columns: int = 100, **more: str
    ) -> tuple[int, str]:
        """In a terminal of its own: the exit code, and what was to be seen."""
        ours, theirs = pty.openpty()
        environment = (
            self.environment() | {"COLUMNS": str(columns), "TERM": "xterm-256color"} | more
        )
        process = subprocess.Popen(
            [*COMMAND, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        if answer:
            os.write(ours, answer.encode())
        seen = _read_all(ours, process)
        os.close(ours)
        return process.wait(30), seen

    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.place()}

    def place(self) -> dict[str, str]:
        return {"DATABASE_URL": self.url, "LANEWAY_SCHEMA": self.schema}


def _read_all(terminal: int, process: "subprocess.Popen[bytes]") -> str:
    seen, end = b"", time.monotonic() + 60
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], 0.1)
        try:
            seen += os.read(terminal, 65536) if ready else b""
        except OSError:  # the other side was closed
            break
        if not ready and process.poll() is not None:
            break
    return seen.decode()


def read_until(terminal: int, text: str) -> str:
    """What a terminal shows until ``text`` is to be seen."""
    seen, end = "", time.monotonic() + 30
    while text not in seen:
        assert time.monotonic() < end, seen
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")
    return seen
