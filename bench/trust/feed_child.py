"""Follows a stream with the client's `RevocationFeed`; a line for each agent of whose stop it then knows.

A process of its own, as `agentid` is no part of the service; arguments: stream, issuer, audience. Ends with
its standard input.
"""

import sys

from agentid import Client
from agentid.verify import RevocationFeed, Revocations, SignalRules, VerifiedSignal


class TellingRevocations(Revocations):
    """Writes the agent's id once `is_revoked` says so."""

    def apply(self, signal: VerifiedSignal) -> None:
        super().apply(signal)
        if signal.agent_id is not None and self.has_agent(signal.agent_id):
            sys.stdout.write(f"{signal.agent_id}\n")
            sys.stdout.flush()


def main(stream_id: str, issuer: str, audience: str) -> None:
    rules = SignalRules(issuer, audience)
    with Client() as client, RevocationFeed(client, stream_id, rules=rules, revocations=TellingRevocations()):
        sys.stdout.write("following\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
