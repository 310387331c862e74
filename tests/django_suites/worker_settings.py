"""As settings, on the database of the tests: for worker processes that these start."""

from tests.django_suites.settings import *  # noqa: F403
from tests.django_suites.settings import DATABASES, NAME

DATABASES["default"]["NAME"] = f"{NAME}.test"
