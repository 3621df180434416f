"""`python -m tiebreak`."""

from tiebreak.cli.app import main

main()
