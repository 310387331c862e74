"""The engine: all groups of verbs in one object."""

from typing import TYPE_CHECKING

from .channels import Channels
from .claiming import Claiming
from .dead_letters import DeadLetters
from .inspecting import Inspecting
from .migrations import Migrations
from .publishing import Publishing
from .settling import Settling
from .upkeep import Upkeep

if TYPE_CHECKING:
    from penstock.contract import Engine


class SqliteEngine(
    Publishing, Claiming, Settling, Upkeep, Channels, DeadLetters, Inspecting, Migrations
):
    """A verb is a few statements, so each needs a transaction."""

    atomic = True


if TYPE_CHECKING:
    _: type[Engine] = SqliteEngine
