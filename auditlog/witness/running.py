"""The witness's command line, the same with and without Django."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from auditlog.tlog.notes import VerifierKey
from auditlog.tlog.policy import Policy
from auditlog.witness.cosigning import Witness
from auditlog.witness.keys import key_of, log_key, stored_vkey
from auditlog.witness.server import WitnessServer
from auditlog.witness.state import StateFolder, WitnessUnusable

DESCRIPTION = "Cosign the checkpoints of transparency logs (C2SP tlog-witness), until SIGTERM or SIGINT."


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options that `run` takes."""
    parser.add_argument(
        "--state", type=Path, required=True, metavar="DIR", help="folder of the key and state"
    )
    parser.add_argument(
        "--listen", default="127.0.0.1:7380", metavar="HOST:PORT", help="default: %(default)s"
    )
    parser.add_argument("--name", help="name of the key, such as witness.example/w1; for the first start")
    parser.add_argument(
        "--log", action="append", default=[], metavar="VKEY", help="key of a log to follow; repeatable"
    )
    parser.add_argument("--policy", type=Path, metavar="FILE", help="follow the logs of this policy file")
    parser.add_argument("--show-key", action="store_true", help="print the witness's public key and end")


def run(options: dict[str, Any], say: Callable[[str], None]) -> None:
    """Serve until the process ends; `say` prints a line.

    Raises: WitnessUnusable, TlogError, OSError.
    """
    known = stored_vkey(options["state"])
    if options["show_key"] and known is not None:
        say(known)
        return
    with StateFolder(options["state"]) as folder:
        key = key_of(folder, options["name"])
        say(key.public.encode())
        if not options["show_key"]:
            witness = Witness(folder, key, _log_keys(options["log"], options["policy"]))
            _serve(witness, _address(options["listen"]), say)


def _serve(witness: Witness, address: tuple[str, int], say: Callable[[str], None]) -> None:
    with WitnessServer(address, witness) as server:
        say(f"Listening on port {server.server_address[1]}")
        server.serve_forever()


def _log_keys(vkeys: list[str], policy: Path | None) -> list[VerifierKey]:
    found = list(map(log_key, vkeys))
    if policy is not None:
        found += [log.key for log in Policy.parse(policy.read_bytes()).logs]
    if not found:
        raise WitnessUnusable("Name a log to follow: --log or --policy")
    return found


def _address(listen: str) -> tuple[str, int]:
    """Split HOST:PORT; an IPv6 address stands in brackets."""
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 2**16):
        raise WitnessUnusable(f"Not HOST:PORT: {listen}")
    return host.strip("[]"), int(port)
