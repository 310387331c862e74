"""A task that runs in a process of its own, and one that is sent elsewhere by its name."""

import os
from pathlib import Path

from laneway import INJECTED, Message, Tasks

tasks = Tasks(queue="files")


@tasks.task(run="process")
def note(file: str, text: str, message: Message = INJECTED) -> None:
    Path(file).write_text(f"{os.getpid()} {text} {message.kind}")


@tasks.task
def add(a: int, b: int = 1) -> None:
    note.publish("x", "y")  # what it names must not be sent along
