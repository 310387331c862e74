"""The engine: all groups of verbs in one object."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.contract import Ability

from .channels import Channels
from .claiming import Claiming
from .dead_letters import DeadLetters
from .events import Events
from .examining import Examining
from .inspecting import Inspecting
from .schedules import Schedules
from .settling import Settling
from .sleeping import Sleeping
from .upkeep import Upkeep

if TYPE_CHECKING:
    from penstock.contract import Engine


class SqliteEngine(
    Schedules,
    Claiming,
    Settling,
    Upkeep,
    Channels,
    DeadLetters,
    Inspecting,
    Sleeping,
    Events,
    Examining,
):
    """A verb is a few statements, so each needs a transaction."""

    dialect = "sqlite"
    atomic = True
    lacks: Mapping[Ability, str] = {
        "open transactions": "SQLite has one writer at a time: all others wait for it to commit",
        "handlers' transactions": "one that is open while a handler works keeps all others from "
        "writing: begin your own when the work is done, and complete the message on its connection",
    }


if TYPE_CHECKING:
    _: type[Engine] = SqliteEngine
