"""`python -m tiebreak`."""

from tiebreak.cli import main

main()
