"""What ``import penstock`` loads, and what it exports."""

import subprocess
import sys

import penstock

_HEAVY = {
    *("psycopg", "psycopg_pool", "asyncpg", "sqlalchemy", "django", "pydantic", "msgspec"),
    *("pyspark", "pyarrow"),
}


def loaded_after(code: str) -> set[str]:
    look = f"{code}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60
    )
    return _HEAVY & set(done.stdout.split())


def test_the_package_loads_no_driver() -> None:
    assert loaded_after("import penstock; penstock.PenstockError; penstock.Policy") == set()


def test_the_spark_package_loads_spark_when_it_is_used() -> None:
    assert loaded_after("import penstock.spark; penstock.spark.doctor") == set()


def test_a_client_loads_its_driver_only() -> None:
    code = "from penstock import Queue; Queue('postgresql://localhost/x')"
    assert loaded_after(code) - {"msgspec"} == {"psycopg", "psycopg_pool"}


def test_every_public_name_is_there() -> None:
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None, name
    assert set(penstock._HOME) | {"__version__"} == set(penstock.__all__)
    assert set(penstock.__all__) <= set(dir(penstock))
