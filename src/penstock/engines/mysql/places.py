"""Positions in a channel: for each priority that has known work, after which message it lies."""

from collections.abc import Iterable, Mapping

Place = tuple[int, int]
"""Due time and id: everything unstarted lies behind it."""

Places = dict[int, Place]


def read(text: bytes | str) -> Places:
    """From the channel's row: ``priority:due:id`` with commas between."""
    plain = text.decode() if isinstance(text, bytes) else text
    places: Places = {}
    for part in filter(None, plain.split(",")):
        priority, due, id = map(int, part.split(":"))
        places[priority] = due, id
    return places


def written(places: Mapping[int, Place]) -> bytes:
    return ",".join(f"{p}:{due}:{id}" for p, (due, id) in sorted(places.items())).encode()


def lowest(places: Places, told: Iterable[tuple[int, Place]]) -> Places:
    """The lower of two positions in each priority."""
    merged = dict(places)
    for priority, place in told:
        merged[priority] = min(place, merged.get(priority, place))
    return merged
