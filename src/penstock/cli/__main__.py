"""``python -m penstock.cli``"""

from . import main

main()
