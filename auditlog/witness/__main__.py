"""`python -m auditlog.witness`: a witness that needs neither Django nor the service's settings."""

import logging
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path

from auditlog.tlog.lines import TlogError
from auditlog.tlog.policy import Policy
from auditlog.witness.cosigning import Witness
from auditlog.witness.server import WitnessServer
from auditlog.witness.state import StateFolder, WitnessUnusable, key_of, log_key, stored_vkey


def main() -> None:
    """Serve until the process ends; exit with 1 if the witness can't start."""
    parser = ArgumentParser(
        prog="python -m auditlog.witness",
        description="Cosign the checkpoints of transparency logs (C2SP tlog-witness) until SIGTERM.",
    )
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
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        with suppress(KeyboardInterrupt):
            run(parser.parse_args())
    except (WitnessUnusable, TlogError, OSError) as error:
        parser.exit(1, f"{error}\n")


def run(options: Namespace) -> None:
    """Do as the options say. Raises: WitnessUnusable, TlogError, OSError."""
    known = stored_vkey(options.state)
    if options.show_key and known is not None:
        _say(known)
        return
    with StateFolder(options.state) as folder:
        key = key_of(folder, options.name)
        _say(key.public.encode())
        if options.show_key:
            return
        log_keys = list(map(log_key, options.log))
        if options.policy is not None:
            log_keys += Policy.parse(options.policy.read_bytes()).logs
        if not log_keys:
            raise WitnessUnusable("Name a log to follow: --log or --policy")
        with WitnessServer(_address(options.listen), Witness(folder, key, log_keys)) as server:
            _say(f"Listening on port {server.server_address[1]}")
            server.serve_forever()


def _address(listen: str) -> tuple[str, int]:
    """Split HOST:PORT; an IPv6 address stands in brackets."""
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 2**16):
        raise WitnessUnusable(f"Not HOST:PORT: {listen}")
    return host.strip("[]"), int(port)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
