"""A disk so small that it can be filled: a tmpfs of our own, which only root may mount."""

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.embedded import server_account
from penstock.errors import InvalidOption

MEBIBYTES = 400


class SmallDisk:
    """``fill`` leaves not a byte, ``empty`` takes away what filled it."""

    def __enter__(self) -> Self:
        if os.geteuid() != 0 or shutil.which("mount") is None:
            raise InvalidOption("a full disk is a small tmpfs, and only root may mount one")
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-disk-", dir="/tmp"))
        options = f"size={MEBIBYTES}m,mode=755"
        command = ["mount", "-t", "tmpfs", "-o", options, "penstock-chaos", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self.folder.rmdir()
            raise InvalidOption(f"no tmpfs could be mounted here: {done.stderr.strip()}")
        if account := server_account():
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Lazily: a process that is about to end may still stand in it.
        subprocess.run(["umount", "-l", str(self.folder)], check=False, capture_output=True)
        with suppress(OSError):
            self.folder.rmdir()

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"

    def fill(self) -> None:
        block = bytes(1 << 16)
        with open(self._ballast, "wb", buffering=0) as file:
            while True:
                try:
                    file.write(block)
                except OSError:
                    return

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)
