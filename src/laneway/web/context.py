"""What a page function gets: the request, who asks, and what may be read."""

import re
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from laneway.contract import Ability
from laneway.errors import InvalidOption, shown
from laneway.operator import VERBS, Operator, Principal

from .api import parameters_of
from .documents import Redact
from .reads import CachedReader
from .request import WebRequest, WebResponse

PAGE_ROWS = 50
_MINUTE = timedelta(minutes=1)
_BACK = re.compile(r"([a-z-]+(/\d{1,19})?)?(\?[^\s\\]*)?")


@dataclass(frozen=True, slots=True)
class PageView:
    """A template and its values; ``title`` goes into the browser's tab."""

    template: str
    title: str
    values: dict[str, Any] = field(default_factory=dict)
    status: int = 200


class Context:
    """One request by one principal."""

    def __init__(
        self,
        request: WebRequest,
        reader: CachedReader,
        operator: Operator,
        read_only: bool = False,
        redact: Redact | None = None,
        starts: Any = None,
        trace_url: str = "",
    ) -> None:
        self.request = request
        self.reader = reader
        self.operator = operator
        self.read_only = read_only
        self.params = request.params
        self.starts = starts
        self.trace_url = trace_url
        self.redact: Redact = redact or (lambda what, text: text)

    @property
    def principal(self) -> Principal:
        return self.reader.principal

    def at(self, path: str, query: str) -> "Context":
        """The same viewer on another page."""
        found = copy(self)
        found.request = replace(self.request, method="GET", path=path, query=query, body=b"")
        found.params = found.request.params
        return found

    @cached_property
    def now(self) -> datetime:
        """The database's clock."""
        found: datetime = self.read("clock")
        return found

    @property
    def minute_ends(self) -> datetime:
        """When the minute under way ends. Figures until then are the same question for all viewers
        during that minute, and do not ask for the clock again."""
        return self.now.replace(second=0, microsecond=0) + _MINUTE

    def read(self, verb: str, *args: Any, **named: Any) -> Any:
        return self.reader.read(verb, *args, **named)

    @cached_property
    def history(self) -> str:
        """What the history keeps. Minutes are counted from it: without all of it a zero does not
        mean that nothing happens."""
        return str(self.read("settings").history)

    @property
    def operator_queue(self) -> str:
        """The queue of calls that name none."""
        return self.operator._queue.name

    def lacks(self, ability: Ability) -> str | None:
        """Why this database does not have something, in a sentence; None if it has it."""
        return self.operator._queue.database.engine.lacks.get(ability)

    def look_at_starts(self) -> None:
        """Who was served since the last look; asked once for all viewers."""
        self.reader.shared("starts", self.starts.look)

    def may(self, verb: str) -> bool:
        return self.reader.may(verb)

    def takes(self, verb: str, parameter: str) -> bool:
        """Whether a verb has that parameter."""
        return verb in VERBS and parameter in parameters_of(verb).all

    def link(self, path: str, **params: object) -> str:
        return self.request.link(path, **params)

    def again(self, **params: object) -> str:
        """This page with other parameters; None removes one."""
        chosen = {**self.params, "done": None, **params}
        return self.link(self.request.path[1:], **chosen)

    @property
    def here(self) -> str:
        """This page as seen from the mount, to come back to."""
        kept = {name: value for name, value in self.params.items() if name != "done"}
        return self.request.path[1:] + (f"?{urlencode(kept)}" if kept else "")

    def text(self, name: str) -> str | None:
        return self.params.get(name)

    def whole(self, name: str, default: int = 0) -> int:
        text = self.params.get(name, str(default))
        if not re.fullmatch(r"\d{1,18}", text):
            raise InvalidOption(f"{name} must be a whole number, not {shown(text)}")
        return int(text)


def checked_back(text: str) -> str:
    """A page below the mount, or the first one: never another site."""
    return text if _BACK.fullmatch(text) else ""


Answer = PageView | WebResponse
