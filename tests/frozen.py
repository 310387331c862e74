"""A server that neither answers nor closes a connection."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from laneway.dev.embedded import EmbeddedPostgres


@contextmanager
def frozen(server: EmbeddedPostgres) -> Iterator[None]:
    """The server with all of its processes neither answers nor closes a connection."""
    leader = psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0]))
    processes = [leader, *leader.children(recursive=True)]
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process.pid, signal.SIGCONT)
