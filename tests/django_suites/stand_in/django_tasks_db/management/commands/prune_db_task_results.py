"""Results end by themselves here; the tests of this command are left out."""

import logging

logger = logging.getLogger("prune")
