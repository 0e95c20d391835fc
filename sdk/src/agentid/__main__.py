"""`python -m agentid`."""

import sys

from agentid.command.main import main

if __name__ == "__main__":
    sys.exit(main())
