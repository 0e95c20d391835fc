"""What tests do to a private SoftHSM from a child process: `python -m compliance.keys.tests.scenarios NAME
…`.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pkcs11 import KeyType

from compliance.core.errors import Unavailable
from compliance.keys.base import KeyRef, SignatureAlgorithm
from compliance.keys.pkcs11.backend import LONGEST_RESTART_PAUSE, Pkcs11Backend
from compliance.keys.pkcs11.module import module_at
from compliance.keys.pkcs11.provisioning import make_tokens
from compliance.keys.pkcs11.token import LONGEST_PAUSE, TokenConfig
from compliance.keys.tests.softhsm import PIN, SO_PIN
from compliance.keys.uri import parse
from compliance.observing import metrics

RSA = SignatureAlgorithm.RSA_SHA256
EC = SignatureAlgorithm.ECDSA_SHA256


def make_backend(label: str, *, pin: str = PIN, module: str | None = None, shards: int = 0) -> Pkcs11Backend:
    path = os.environ["PKCS11_MODULE"] if module is None else module
    return Pkcs11Backend(module_at(path), TokenConfig(label, pin), shards=shards)


def outcome(call: Callable[[], object]) -> dict[str, Any]:
    """What a call did, how many calls of the module it made, and how long it says to wait, in seconds."""
    before, retry_after = module_calls(), None
    try:
        call()
        result = "ok"
    except Unavailable as error:
        result, retry_after = f"{type(error).__name__}: {error.message}", error.retry_after
    return {"result": result, "calls": module_calls() - before, "retry_after": retry_after}


def module_calls() -> int:
    """The calls of the module that this process has made."""
    samples = [sample for metric in metrics.HSM_CALLS.collect() for sample in metric.samples]
    return sum(int(sample.value) for sample in samples if sample.name.endswith("_total"))


def refused_unasked(call: Callable[[], object]) -> dict[str, Any]:
    """The outcome of a call after a failure: a slow machine may take so long that some are let through."""
    for _ in range(10):
        found = outcome(call)
        if not found["calls"]:
            break
    return found


def sign_until(stop: threading.Event, backend: Pkcs11Backend, key: KeyRef, errors: list[str]) -> None:
    while not stop.is_set():
        try:
            backend.sign(key.uri, b"data", RSA)
        except Exception as error:  # noqa: BLE001  (the test looks at them)
            errors.append(repr(error))


def init(*labels: str) -> dict[str, Any]:
    module = module_at(os.environ["PKCS11_MODULE"])
    return {"made": make_tokens(module, list(labels), so_pin=SO_PIN, user_pin=PIN)}


def start(barrier: str) -> dict[str, Any]:
    """Log in, generate and sign at the moment the file appears."""
    while not Path(barrier).exists():
        time.sleep(0.005)
    backend = make_backend("alpha", shards=2)
    backend.generate_ec(label="start")
    key = backend.generate_rsa(label="start", spread=True)
    make_backend("beta").check()
    return outcome(lambda: backend.sign(key.uri, b"data", RSA))


def fork_while_signing(rounds: str) -> dict[str, Any]:
    """Fork again and again beside two signing threads; each child signs, too."""
    backend = make_backend("alpha", shards=2)
    key = backend.generate_rsa(label="parent", spread=True)
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
        exits.append(_wait(child, seconds=60))
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
    first, second, check = outcome(sign), refused_unasked(sign), outcome(backend.check)
    longest = max(LONGEST_PAUSE, backend._restart_pause())
    shutil.move(away, source)
    healed = outcome(lambda: _until_available(sign))
    found = {"before": before, "first": first, "second": second, "check": check, "healed": healed}
    return found | {"longest_pause": longest}


def shard_lost(directory: str) -> dict[str, Any]:
    """Lose the shard that holds a key: that key is refused, others sign, new ones go to the other shard."""
    backend = make_backend("alpha", shards=2)
    ca = backend.generate_ec(label="ca")
    lost = backend.generate_rsa(label="agent", spread=True)
    token = parse(lost.uri).token
    probe = Pkcs11Backend(module_at(os.environ["PKCS11_MODULE"]), TokenConfig(token, PIN))
    with_shard = _directory_changed_by(Path(directory), probe)
    shutil.move(with_shard, f"{directory}.shard")
    refused = outcome(lambda: backend.sign(lost.uri, b"data", RSA))
    again = refused_unasked(lambda: backend.sign(lost.uri, b"data", RSA))
    others = {parse(backend.generate_rsa(label="agent", spread=True).uri).token for _ in range(3)}
    signs = [outcome(lambda: backend.sign(ca.uri, b"data", EC))["result"] for _ in range(20)]
    problems = backend.problems()
    shutil.move(f"{directory}.shard", with_shard)
    healed = outcome(lambda: _until_available(lambda: backend.sign(lost.uri, b"data", RSA)))
    return {
        "lost": token,
        "refused": refused,
        "again": again,
        "others": sorted(others),
        "signs": signs,
        "problems": problems,
        "healed": healed,
    }


def record_cut_off(directory: str) -> dict[str, Any]:
    """Cut a token's record off as a killed login does, while a process that has the token open goes on."""
    backend = make_backend("alpha")
    key = backend.generate_rsa(label="cut")
    sign = lambda: backend.sign(key.uri, b"data", RSA)  # noqa: E731
    record = _directory_changed_by(Path(directory), backend) / "token.object"
    whole = record.read_bytes()
    os.truncate(record, 0)
    after = outcome(lambda: _until_available(sign))
    module_at(os.environ["PKCS11_MODULE"]).restart(seen_epoch=module_at(os.environ["PKCS11_MODULE"]).epoch)
    return {"after": after, "restarted": outcome(sign), "same": record.read_bytes() == whole, "uri": key.uri}


def sign_with(uri: str) -> dict[str, Any]:
    return outcome(lambda: make_backend("alpha").sign(uri, b"data", RSA))


def _directory_changed_by(directory: Path, backend: Pkcs11Backend) -> Path:
    before = {path: len(list(path.iterdir())) for path in directory.iterdir()}
    backend.generate_ec(label="trace")
    return next(path for path in directory.iterdir() if len(list(path.iterdir())) > before[path])


def _until_available(call: Callable[[], object]) -> None:
    # A slow restart of the module makes the pause before the next one long.
    deadline = time.monotonic() + 2 * LONGEST_RESTART_PAUSE
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


def missing_modules(*paths: str) -> dict[str, Any]:
    return {"results": [outcome(make_backend("alpha", module=path).check)["result"] for path in paths]}


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


def generate_until_killed(mark: str) -> dict[str, Any]:
    """Generate keys without end; the file appears with the first."""
    backend = make_backend("alpha", shards=2)
    while True:
        backend.generate_rsa(label="killed", spread=True)
        Path(mark).touch()


def leftovers() -> dict[str, Any]:
    """What killed processes left: how many keys, how many of them sign, how many tell their age."""
    backend = make_backend("alpha", shards=2)
    found = backend.list_keys("killed")
    usable = [outcome(lambda key=key: backend.sign(key.uri, b"data", RSA))["result"] for key in found]  # type: ignore[misc]
    dated = sum(key.made_at is not None for key in found)
    return {"count": len(found), "usable": usable.count("ok"), "dated": dated}


def make_key() -> dict[str, Any]:
    return {"uri": make_backend("alpha").generate_rsa(label="elsewhere").uri}


def _made_elsewhere() -> str:
    command = [sys.executable, "-m", "compliance.keys.tests.scenarios", "make_key"]
    uri: str = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["uri"]
    return uri


def overlooked() -> dict[str, Any]:
    """Make a key after another process did, so that SoftHSM takes its list for current; sign with both."""
    backend, module = make_backend("alpha"), module_at(os.environ["PKCS11_MODULE"])
    backend.list_keys()
    epoch = module.epoch
    uris = [_made_elsewhere(), backend.generate_rsa(label="own").uri]
    signed = [outcome(lambda uri=uri: backend.sign(uri, b"data", RSA))["result"] for uri in uris]  # type: ignore[misc]
    return {"signed": signed, "restarts": module.epoch - epoch}


def half_read(directory: str) -> dict[str, Any]:
    """Read the files of a new key of another process half-written, as SoftHSM does by chance; then sign."""
    backend, module = make_backend("alpha"), module_at(os.environ["PKCS11_MODULE"])
    backend.check()
    known, epoch = set(Path(directory).glob("*/*.object")), module.epoch
    uri = _made_elsewhere()
    contents = {path: path.read_bytes() for path in set(Path(directory).glob("*/*.object")) - known}
    for path in contents:
        os.truncate(path, 8)  # only the number of its version
    listed = len(backend.list_keys("elsewhere"))
    for path, content in contents.items():
        path.write_bytes(content)
    signed = outcome(lambda: backend.sign(uri, b"data", RSA))
    restarts = module.epoch - epoch
    other = uri.replace("id=%", "id=%FF%")
    unknown = {outcome(lambda: backend.sign(other, b"data", RSA))["result"] for _ in range(20)}
    return {
        "files": len(contents),
        "listed": listed,
        "signed": signed,
        "restarts": restarts,
        "unknown": sorted(unknown),
        "restarts_at_end": module.epoch - epoch,
    }


def nameless() -> dict[str, Any]:
    """Store a key pair without CKA_ID, and list."""
    backend = make_backend("alpha")
    options = {"id": b"", "label": "nameless", "store": True}
    backend._sessions(backend.main_label).use(
        lambda session: session.session.generate_keypair(KeyType.RSA, 2048, **options)
    )
    named = backend.generate_ec(label="named")
    return {"listed": [key.uri for key in backend.list_keys()], "named": named.uri}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    sys.stdout.write(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
