"""The operator of the command line: whoever has the database may do everything, and the audit shows
the name of the user of this machine."""

from getpass import getuser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laneway import Queue
    from laneway.operator import Operator


def acting(client: "Queue") -> "Operator":
    from laneway.operator import Operator, admin

    return Operator(client, admin(_user()), source="cli")


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return "unknown"
