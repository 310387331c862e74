"""What the tests start as a worker process."""

import os
import sys

from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.django_suites.worker_settings"
execute_from_command_line(sys.argv)
