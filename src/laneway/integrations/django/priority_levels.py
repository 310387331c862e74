"""Django's priorities, -100 to 100, as the ten that a channel has."""

from bisect import bisect_right
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

DJANGO_LOWEST, DJANGO_HIGHEST = -100, 100
MOST_LEVELS = 10

LEVELS = (0, 1, 12, 23, 34, 45, 56, 67, 78, 89)
"""Of a site that names none: 0 and below are one level, so that tasks without a priority have the
lowest, which costs least."""


def checked_levels(option: object) -> Sequence[int]:
    """``OPTIONS["priorities"]``: where each level begins, in rising order."""
    if option is None:
        return LEVELS
    if not isinstance(option, list | tuple) or not _rise(option):
        raise ImproperlyConfigured(
            f'OPTIONS["priorities"] of a task backend is {option!r}: give the priorities that your '
            f"tasks have, at most {MOST_LEVELS} whole numbers from {DJANGO_LOWEST} to "
            f"{DJANGO_HIGHEST} in rising order, such as [-10, 0, 10, 50]"
        )
    return tuple(option)


def _rise(levels: Sequence[object]) -> bool:
    numbers = [level for level in levels if type(level) is int]
    return (
        1 <= len(levels) <= MOST_LEVELS
        and len(numbers) == len(levels)
        and numbers == sorted(set(numbers))
        and numbers[0] >= DJANGO_LOWEST
        and numbers[-1] <= DJANGO_HIGHEST
    )


def level_of(priority: int, levels: Sequence[int]) -> int:
    """The highest level that begins at or below it; the lowest if there is none."""
    return max(0, bisect_right(levels, priority) - 1)
