"""`python -m paceline`: the command line, where its script is not on PATH."""

import sys

from paceline.cli import main

sys.exit(main())
