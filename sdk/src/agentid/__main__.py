"""`python -m agentid`."""

from agentid.command.main import entrance

if __name__ == "__main__":
    entrance()
