"""`python -m auditlog.witness`: a witness that needs neither Django nor the service's settings."""

import logging
import sys
from argparse import ArgumentParser
from contextlib import suppress

from auditlog.tlog.errors import TlogError
from auditlog.witness.running import DESCRIPTION, add_arguments, run
from auditlog.witness.state import WitnessUnusable


def main() -> None:
    """Exit with 1 if the witness can't start."""
    parser = ArgumentParser(prog="python -m auditlog.witness", description=DESCRIPTION)
    add_arguments(parser)
    options = vars(parser.parse_args())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        with suppress(KeyboardInterrupt):
            run(options, _say)
    except (WitnessUnusable, TlogError, OSError) as error:
        parser.exit(1, f"{error}\n")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
