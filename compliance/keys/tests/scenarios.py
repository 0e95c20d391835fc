"""What tests do to a private SoftHSM from a child process: `python -m compliance.keys.tests.scenarios NAME
…`.
"""

import json
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compliance.errors import Unavailable
from compliance.keys.base import KeyRef, SignatureAlgorithm
from compliance.keys.module import module_at
from compliance.keys.pkcs11_backend import Pkcs11Backend
from compliance.keys.tests.softhsm import PIN, init_token
from compliance.keys.token import TokenConfig

RSA = SignatureAlgorithm.RSA_SHA256


def make_backend(*labels: str, pin: str = PIN, module: str | None = None) -> Pkcs11Backend:
    path = os.environ["PKCS11_MODULE"] if module is None else module
    return Pkcs11Backend(module_at(path), [TokenConfig(label, pin) for label in labels])


def outcome(call: Callable[[], object]) -> dict[str, Any]:
    """What a call did and how long it took, in seconds."""
    started = time.monotonic()
    try:
        call()
        result = "ok"
    except Unavailable as error:
        result = f"{type(error).__name__}: {error.message}"
    return {"result": result, "seconds": time.monotonic() - started}


def sign_until(stop: threading.Event, backend: Pkcs11Backend, key: KeyRef, errors: list[str]) -> None:
    while not stop.is_set():
        try:
            backend.sign(key.uri, b"data", RSA)
        except Exception as error:  # noqa: BLE001  (the test looks at them)
            errors.append(repr(error))


def init(*labels: str) -> dict[str, Any]:
    for label in labels:
        init_token(os.environ["PKCS11_MODULE"], label)
    return {}


def start(barrier: str) -> dict[str, Any]:
    """Log in, generate and sign at the moment the file appears."""
    while not Path(barrier).exists():
        time.sleep(0.005)
    backend = make_backend("alpha", "beta")
    key = backend.generate_ec(label="start")
    return outcome(lambda: backend.sign(key.uri, b"data", SignatureAlgorithm.ECDSA_SHA256))


def fork_while_signing(rounds: str) -> dict[str, Any]:
    """Fork again and again beside two signing threads; each child signs with both tokens' keys."""
    backend = make_backend("alpha", "beta")
    key = backend.generate_rsa(label="parent")
    stop, errors, exits = threading.Event(), [], []  # type: ignore[var-annotated]
    threads = [threading.Thread(target=sign_until, args=(stop, backend, key, errors)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(int(rounds)):
        child = os.fork()
        if child == 0:
            backend.sign(key.uri, b"child", RSA)
            backend.check()
            os._exit(0)
        exits.append(_wait(child, seconds=20))
    stop.set()
    for thread in threads:
        thread.join()
    return {"exits": exits, "errors": errors}


def _wait(child: int, seconds: float) -> int | str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hung"


def move_token(directory: str) -> dict[str, Any]:
    """Sign; move the directory away; sign and check; move it back; sign until it works again."""
    source, away = Path(directory), Path(f"{directory}.away")
    backend = make_backend("alpha")
    key = backend.generate_rsa(label="moved")
    sign = lambda: backend.sign(key.uri, b"data", RSA)  # noqa: E731
    before = outcome(sign)
    shutil.move(source, away)
    first, second, check = outcome(sign), outcome(sign), outcome(backend.check)
    shutil.move(away, source)
    healed = outcome(lambda: _eventually(sign, seconds=15))
    return {"before": before, "first": first, "second": second, "check": check, "healed": healed}


def other_token_lost(directory: str) -> dict[str, Any]:
    """Lose the token `beta` only, by renaming what SoftHSM keeps of it; `alpha` must go on."""
    backend_a, backend_b = make_backend("alpha"), make_backend("beta")
    key_a, key_b = backend_a.generate_rsa(label="a"), backend_b.generate_rsa(label="b")
    backend_b.check()
    with_b = _directory_changed_by(Path(directory), backend_b)
    shutil.move(with_b, f"{directory}.beta")
    lost = outcome(lambda: backend_b.sign(key_b.uri, b"data", RSA))
    alpha = [outcome(lambda: backend_a.sign(key_a.uri, b"data", RSA))["result"] for _ in range(20)]
    shutil.move(f"{directory}.beta", with_b)
    healed = outcome(lambda: _eventually(lambda: backend_b.sign(key_b.uri, b"data", RSA), seconds=15))
    return {"lost": lost, "alpha": alpha, "healed": healed}


def _directory_changed_by(directory: Path, backend: Pkcs11Backend) -> Path:
    before = {path: len(list(path.iterdir())) for path in directory.iterdir()}
    backend.generate_ec(label="trace")
    return next(path for path in directory.iterdir() if len(list(path.iterdir())) > before[path])


def _eventually(call: Callable[[], object], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            call()
            return
        except Unavailable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def wrong_pin(pin: str) -> dict[str, Any]:
    backend = make_backend("alpha", pin=pin)
    return {"first": outcome(backend.check), "second": outcome(backend.check)}


def missing_token() -> dict[str, Any]:
    return outcome(make_backend("never-made").check)


def missing_module(path: str) -> dict[str, Any]:
    return outcome(make_backend("alpha", module=path).check)


def restart_under_load() -> dict[str, Any]:
    """Restart the module again and again under signing threads; nobody may notice."""
    backend = make_backend("alpha")
    key = backend.generate_rsa(label="load")
    stop, errors = threading.Event(), []  # type: ignore[var-annotated]
    threads = [threading.Thread(target=sign_until, args=(stop, backend, key, errors)) for _ in range(4)]
    for thread in threads:
        thread.start()
    module = module_at(os.environ["PKCS11_MODULE"])
    for _ in range(20):
        module.restart(seen_epoch=module.epoch)
        time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join()
    return {"errors": errors, "epoch": module.epoch}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    sys.stdout.write(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
