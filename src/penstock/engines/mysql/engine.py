"""The engine: all groups of verbs in one object."""

from typing import TYPE_CHECKING

from .channels import Channels
from .claiming import Claiming
from .dead_letters import DeadLetters
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
    Sleeping,
):
    """Every verb is a few statements that belong together."""

    atomic = True


if TYPE_CHECKING:
    _: type[Engine] = MysqlEngine
