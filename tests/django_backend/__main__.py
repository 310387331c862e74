"""``python -m tests.django_backend [LABEL]``: the site's tests, by Django's own runner."""

import os
import sys

import django
from django.conf import settings
from django.test.utils import get_runner

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.django_backend.settings"
django.setup()
labels = sys.argv[1:] or ["tests.django_backend.cases"]
runner = get_runner(settings)(verbosity=1, interactive=False)
sys.exit(bool(runner.run_tests(labels)))
