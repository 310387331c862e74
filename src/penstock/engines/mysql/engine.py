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
from .reading import Reading
from .schedules import Schedules
from .settling import Settling
from .sleeping import Sleeping
from .upkeep import Upkeep

if TYPE_CHECKING:
    from penstock.contract import Engine


class MysqlEngine(
    Schedules,
    Claiming,
    Settling,
    Upkeep,
    Channels,
    DeadLetters,
    Reading,
    Inspecting,
    Examining,
    Events,
    Sleeping,
):
    """Every verb is a few statements that belong together."""

    dialect = "mysql"
    atomic = True
    lacks: Mapping[Ability, str] = {
        "handlers' transactions": "the worker has none to give on MySQL: begin your own and "
        "complete the message on its connection",
    }


if TYPE_CHECKING:
    _: type[Engine] = MysqlEngine
