"""Channels over several databases: which one a channel belongs to."""

from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import PurePath
from typing import Any, TypeVar, overload
from urllib.parse import unquote, urlsplit

from laneway.errors import InvalidOption, shown
from laneway.model import NewMessage, Published
from laneway.names import check_name

from .aio.queue import AsyncQueue
from .shared.options import ClientAddress
from .sync.queue import Queue

Q = TypeVar("Q", Queue, AsyncQueue, covariant=True)


class Shards(Mapping[str, Q]):
    """Queues in several databases, by name; a channel belongs to one of them.

    The one is found by rendezvous hashing of the names: every process finds the same, nothing is
    stored, and a database that is added takes over its share of the channels and moves no other.
    The name counts, not the address: a database that moves keeps its name. What was published
    before stays where it lies; a worker that serves all of them drains it.

    >>> shards = Shards({"eu-1": Queue(url_1), "eu-2": Queue(url_2)})
    >>> shards.for_channel("tenant-42").publish({"order": 9182}, channel="tenant-42")
    >>> shards.publish({"order": 9182}, channel="tenant-42")  # the same
    >>> Worker(shards).run()
    """

    def __init__(self, databases: Mapping[str, Q]) -> None:
        if not isinstance(databases, Mapping) or not databases:
            raise InvalidOption(
                f'{shown(databases)} names no database: write Shards({{"eu-1": queue, ...}})'
            )
        self._databases: dict[str, Q] = {
            check_name("database", name): q for name, q in databases.items()
        }
        kinds = {_kind(client) for client in self._databases.values()}
        if len(kinds) > 1:
            raise InvalidOption("some are Queues, some AsyncQueues: make shards of one kind")
        places = Counter(q._address.database for q in self._databases.values())
        if any(count > 1 for count in places.values()):
            raise InvalidOption("two names for one database and schema: give each one name")
        self._keys: dict[str, bytes] = {name: _key(name) for name in self._databases}

    def name_for(self, channel: str) -> str:
        """The name of the database that the channel belongs to.

        >>> shards.name_for("tenant-42")
        """
        text = check_name("channel", channel).encode()
        scores = ((_score(key, text), name) for name, key in self._keys.items())
        return max(scores)[1]

    def for_channel(self, channel: str) -> Q:
        """The client of the database that the channel belongs to.

        >>> shards.for_channel("tenant-42").publish({"order": 9182}, channel="tenant-42")
        """
        return self._databases[self.name_for(channel)]

    def split(self, messages: Iterable[Any], *, channel: str = "default") -> dict[str, list[Any]]:
        """The messages by the name of their database; ``channel`` is for those that name none.

        >>> for name, part in shards.split(messages).items():
        ...     shards[name].publish_many(part)
        """
        found: dict[str, list[Any]] = {}
        for message in messages:
            named = message.channel if isinstance(message, NewMessage) else None
            name = self.name_for(channel if named is None else named)
            found.setdefault(name, []).append(message)
        return found

    @overload
    def publish(
        self: "Shards[Queue]", payload: Any, *, channel: str = "default", **options: Any
    ) -> Published: ...

    @overload
    def publish(
        self: "Shards[AsyncQueue]", payload: Any, *, channel: str = "default", **options: Any
    ) -> Coroutine[Any, Any, Published]: ...

    def publish(self, payload: Any, *, channel: str = "default", **options: Any) -> Any:
        """Publishes one message into the database of its channel; with AsyncQueues write
        ``await``. The options are those of ``queue.publish``."""
        client: Any = self.for_channel(channel)
        return client.publish(payload, channel=channel, **options)

    @overload
    def publish_many(
        self: "Shards[Queue]",
        messages: Iterable[Any],
        *,
        channel: str = "default",
        **options: Any,
    ) -> list[Published]: ...

    @overload
    def publish_many(
        self: "Shards[AsyncQueue]",
        messages: Iterable[Any],
        *,
        channel: str = "default",
        **options: Any,
    ) -> Coroutine[Any, Any, list[Published]]: ...

    def publish_many(
        self, messages: Iterable[Any], *, channel: str = "default", **options: Any
    ) -> Any:
        """Publishes many messages or none, if all belong to one database. Two databases have no
        transaction in common: then it raises InvalidOption, and ``split`` says what goes where."""
        given = list(messages)
        client: Any = self.for_all(given, channel)
        return client.publish_many(given, channel=channel, **options)

    def for_all(self, messages: Sequence[Any], channel: str = "default") -> Q:
        """The one client that all of the messages belong to."""
        names = list(self.split(messages, channel=channel)) or [self.name_for(channel)]
        if len(names) > 1:
            raise InvalidOption(
                f"the messages belong to {' and '.join(names)}, and no transaction spans them: "
                "publish each part of shards.split(messages) by itself"
            )
        return self._databases[names[0]]

    def __getitem__(self, name: str) -> Q:
        return self._databases[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._databases)

    def __len__(self) -> int:
        return len(self._databases)

    def __repr__(self) -> str:
        return f"<Shards {', '.join(self._databases)}>"


def _kind(client: object) -> type:
    for kind in (Queue, AsyncQueue):
        if isinstance(client, kind):
            return kind
    raise InvalidOption(f"{shown(client)} is neither a Queue nor an AsyncQueue")


def _key(name: str) -> bytes:
    """A name may be longer than a key of the hash."""
    return blake2b(name.encode(), digest_size=32).digest()


def _score(key: bytes, channel: bytes) -> bytes:
    """The database with the highest one has the channel. Part of what is stored, in effect: with
    another function nearly every channel would move."""
    return blake2b(channel, key=key, digest_size=8).digest()


# Names for databases that were given none.


def database_names(addresses: Sequence[ClientAddress]) -> list[str]:
    """Short and without the password: host and database, or the file; with a number if two are
    alike."""
    names = [_with_schema(address) for address in addresses]
    count, seen = Counter(names), Counter[str]()
    found = []
    for name in names:
        seen[name] += 1
        found.append(f"{name}#{seen[name]}" if count[name] > 1 else name)
    return found


def _with_schema(address: ClientAddress) -> str:
    found = database_name(address.url)
    return found if address.schema == "laneway" else f"{found}.{address.schema}"


def database_name(url: str) -> str:
    """Host and database, or the file."""
    parts = urlsplit(url)
    path = unquote(parts.path).strip("/")
    if parts.scheme.startswith("sqlite"):
        return PurePath(path).name or "sqlite"
    return "/".join(part for part in (parts.hostname or "", path) if part) or parts.scheme
