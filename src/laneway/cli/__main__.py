"""``python -m laneway.cli``"""

from . import main

main()
