"""What ``import laneway`` loads, and what it exports."""

import re
import subprocess
import sys
from importlib import import_module

import pytest

import laneway
import laneway.client
from laneway import LanewayError
from laneway import errors as errors_module

_HEAVY = {
    *("psycopg", "asyncpg", "sqlalchemy", "django", "pydantic", "msgspec"),
    *("pyspark", "pyarrow"),
}


def loaded_after(code: str) -> set[str]:
    look = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60
    )
    return _HEAVY & set(done.stdout.split())


def test_the_package_loads_no_driver() -> None:
    assert loaded_after("import laneway; laneway.LanewayError; laneway.Policy") == set()


def test_the_spark_package_loads_spark_when_it_is_used() -> None:
    assert loaded_after("import laneway.spark; laneway.spark.doctor") == set()


def test_a_client_loads_its_driver_only() -> None:
    code = "from laneway import Queue; Queue('postgresql://localhost/x')"
    assert loaded_after(code) - {"msgspec"} == {"psycopg"}


def test_every_public_name_is_there() -> None:
    for name in laneway.__all__:
        assert getattr(laneway, name) is not None, name
    assert set(laneway._MODULE_OF) | {"__version__"} == set(laneway.__all__)
    assert set(laneway.__all__) <= set(dir(laneway))
    assert len(laneway.__all__) <= 36


@pytest.mark.parametrize("name", laneway._ELSEWHERE_OF)
def test_a_name_of_another_module_says_which(name: str) -> None:
    module = f"laneway.{laneway._ELSEWHERE_OF[name]}"
    assert getattr(import_module(module), name) is not None
    with pytest.raises(ImportError) as raised:
        exec(f"from laneway import {name}")
    assert str(raised.value) == f"{name} is in {module}"


def test_every_error_says_where_it_is() -> None:
    errors = {name for name, value in vars(errors_module).items() if isinstance(value, type)}
    ours = {name for name in errors if issubclass(getattr(errors_module, name), LanewayError)}
    named = {name for name, module in laneway._ELSEWHERE_OF.items() if module == "errors"}
    assert ours - named == {"LanewayError", "LeaseLost", "SparkFailed", "LakeMismatch"}


def test_every_error_is_in_the_tree_that_the_docstring_draws() -> None:
    tree = errors_module.__doc__ or ""
    for name, value in vars(errors_module).items():
        if isinstance(value, type) and issubclass(value, LanewayError):
            assert re.search(rf"(── |^){name}\b", tree, re.MULTILINE), name


@pytest.mark.parametrize("name", laneway._RENAMED)
def test_a_renamed_name_says_its_new_one(name: str) -> None:
    with pytest.raises(ImportError) as raised:
        exec(f"from laneway import {name}")
    assert str(raised.value) == f"{name} is now called {laneway._RENAMED[name]}"
    assert laneway._RENAMED[name] in laneway.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(laneway, "Nonsense")
    assert not hasattr(laneway.client, "Nonsense")


def test_the_client_package_hands_out_its_nouns() -> None:
    for name in laneway.client.__all__:
        assert getattr(laneway.client, name).__name__ == name
