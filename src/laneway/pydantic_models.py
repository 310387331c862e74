"""Models of pydantic, as JSON and back. It is never imported here: who has a model has it."""

import json
import sys
from functools import lru_cache
from typing import Any

from .errors import InvalidPayload

_MASK = "*" * 10
"""What pydantic writes instead of a secret."""


def is_model(value: object) -> bool:
    return is_model_class(type(value))


def is_model_class(kind: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def read_model(value: Any, kind: Any) -> Any:
    """As pydantic reads JSON, which is not how it reads Python's values: a strict model takes a
    time from a text, and bytes are what its configuration says. Raises ValueError."""
    names = _names_it_reads(kind)
    if names and isinstance(value, dict):
        value = {_read_name(key, names, value): part for key, part in value.items()}
    return kind.model_validate_json(json.dumps(value))


def written_model(value: Any) -> Any:
    """A model as plain JSON that reads back as it; raises InvalidPayload if there is none."""
    kind = type(value)
    try:
        written = value.model_dump(mode="json", by_alias=True)
    except UnicodeDecodeError:
        raise InvalidPayload(
            f"{kind.__qualname__} holds bytes that are no text: give it model_config = "
            'ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")'
        ) from None
    except ValueError as error:
        raise InvalidPayload(f"{kind.__qualname__} cannot be written as JSON: {error}") from error
    _check_that_it_reads_back(value, written)
    return written


def _check_that_it_reads_back(value: Any, written: Any) -> None:
    name = type(value).__qualname__
    try:
        read = read_model(written, type(value))
    except (ValueError, TypeError) as error:
        raise InvalidPayload(
            f"what {name} writes could not be read as {name} again ({error}): mend the model, or "
            'publish value.model_dump(mode="json") for readers who take something else'
        ) from error
    if _holds_mask(written) and read != value:
        raise InvalidPayload(
            f"{name} holds a secret, which pydantic writes as {_MASK}: publish a reference to it, "
            "or give the model a serializer that reveals it"
        )


def _holds_mask(written: Any) -> bool:
    if isinstance(written, dict):
        return any(map(_holds_mask, written.values()))
    if isinstance(written, list):
        return any(map(_holds_mask, written))
    return bool(written == _MASK)


def _read_name(key: str, names: dict[str, str], value: dict[str, Any]) -> str:
    meant = names.get(key, key)
    return key if meant in value else meant


@lru_cache(maxsize=1000)
def _names_it_reads(kind: Any) -> dict[str, str]:
    """Fields that are written by one name and read by another: from the first to the second."""
    fields = kind.model_fields.items()
    read = {name: field.validation_alias or name for name, field in fields}
    written = {name: field.serialization_alias or name for name, field in fields}
    return {
        written[name]: read_as
        for name, read_as in read.items()
        if isinstance(read_as, str) and written[name] not in read.values()
    }
