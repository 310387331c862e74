"""Reading verbs of the operator, for one principal, through the shared cache."""

from collections.abc import Callable
from typing import Any

from laneway.client.sync.queue import Queue
from laneway.operator import VERBS, Operator, Principal
from laneway.operator.verbs import check

from .cache import Seen, SharedCache


class CachedReader:
    """What one request reads: the same question twice has one answer, so that the parts of a page
    agree. Remembers the oldest answer, which the page tells its viewer.

    Principals that see the same channels with the same rights share their answers: the rights are
    checked before the cache is asked.
    """

    def __init__(self, queue: Queue, principal: Principal, cache: SharedCache) -> None:
        self.principal = principal
        self._operator = Operator(queue, principal, source="dashboard")
        self._cache = cache
        self._seen: dict[object, Seen[Any]] = {}

    def read(self, verb: str, *args: Any, **named: Any) -> Any:
        """The answer of ``operator.<verb>(…)``; raises NotAllowed before anything is asked."""
        entry = VERBS[verb]
        check(self.principal, entry)
        if entry.acts:
            raise ValueError(f"{verb} is not a reading verb")
        principal = self.principal
        scope = (principal.channel_prefixes, principal.rights)
        key = (verb, scope, repr(args), repr(sorted(named.items())))
        if key not in self._seen:
            ask = getattr(self._operator, verb)
            self._seen[key] = self._cache.get(key, lambda: ask(*args, **named))
        return self._seen[key].value

    def shared(self, name: str, look: Callable[[], object]) -> None:
        """Something of the dashboard's own, as often as the cache allows."""
        self._seen[name] = self._cache.get(name, look)

    def may(self, verb: str) -> bool:
        """Whether this principal may use a verb at all; False if there is none of that name."""
        entry = VERBS.get(verb)
        if entry is None or entry.right not in self.principal.rights:
            return False
        return entry.scope != "refused" or not self.principal.scoped

    @property
    def stale(self) -> Seen[Any] | None:
        """The oldest answer that could not be renewed."""
        old = [seen for seen in self._seen.values() if seen.error is not None]
        return max(old, key=lambda seen: seen.age, default=None)
