"""`python -m bench.pki.key_child WHAT …`: one process of its own that measures the HSM, and prints JSON."""

import json
import os
import random
import secrets
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass

from bench.harness import machine
from bench.harness.stats import percentile
from bench.pki.key_ground import LABEL, PIN, SHARDS, Figures
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.keys.base import KeyBackend, SignatureAlgorithm
from compliance.keys.hosts.backend import KeyHostBackend
from compliance.keys.hosts.client import client_for
from compliance.keys.pkcs11.backend import DIGEST_INFO, Pkcs11Backend
from compliance.keys.pkcs11.module import Pkcs11Module, module_at
from compliance.keys.pkcs11.objects import PRIVATE, SESSION_PUBLIC, SIGN_AND_VERIFY
from compliance.keys.pkcs11.token import TokenConfig
from compliance.keys.sharding import shard_labels
from compliance.keys.uri import Pkcs11Uri, build, parse
from compliance.serving.garbage_collection import spare_garbage_collection

RSA = SignatureAlgorithm.RSA_SHA256
HOT_KEYS = 200
SETTLE_SECONDS = 120.0


def module() -> Pkcs11Module:
    return module_at(os.environ["PKCS11_MODULE"])


def direct() -> Pkcs11Backend:
    return Pkcs11Backend(module(), TokenConfig(LABEL, PIN), shards=SHARDS)


def hosted() -> KeyHostBackend:
    folder = Path(os.environ["PKCS11_HOST_FOLDER"])
    clients = [client_for(folder, number) for number in range(int(os.environ["PKCS11_HOSTS"]))]
    return KeyHostBackend(clients, Environment.LIVE, LABEL, shards=SHARDS)


def backend() -> KeyBackend:
    return hosted() if os.environ["PKCS11_HOSTS"] != "0" else direct()


def uris() -> list[str]:
    found: list[str] = json.loads(Path(os.environ["KEY_GROUND"]).read_text())["uris"]
    return found


def fill(count: str, place: str, places: str) -> Figures:
    """Make the keys of one place's share of the shards, and note their URIs."""
    made: list[str] = []
    labels = list(enumerate(shard_labels(LABEL, SHARDS)))
    with module().entered():
        for number, label in labels[int(place) :: int(places)]:
            share = int(count) // SHARDS + (number < int(count) % SHARDS)
            session = module().find_token(label).open(rw=True, user_pin=PIN)
            first = new_id().bytes
            _, private = session.generate_keypair(
                KeyType.RSA,
                2048,
                id=first,
                label="agent",
                store=True,
                capabilities=SIGN_AND_VERIFY,
                private_template=PRIVATE,
                public_template=SESSION_PUBLIC,
            )
            ids = [first, *(new_id().bytes for _ in range(share - 1))]
            for key_id in ids[1:]:
                private.copy({Attribute.ID: key_id})
            made += [build(Pkcs11Uri(token=label, id=key_id, object="agent")) for key_id in ids]
            session.close()
    Path(os.environ["KEY_GROUND"]).write_text(json.dumps({"made": made}))
    return {"made": len(made)}


def growth(samples: str) -> Figures:
    """A process from its start: its first call, first signatures, and those once handles are read."""
    keys, chance = uris(), random.Random(1)
    chance.shuffle(keys)
    signer = direct()
    return _grown(signer, keys, chance, int(samples), settle=partial(_touch_all, signer, keys))


def growth_behind_hosts(samples: str, *pids: str) -> Figures:
    """The same of a process behind key hosts, once these have come to rest."""
    keys, chance = uris(), random.Random(1)
    chance.shuffle(keys)
    hosts = [int(pid) for pid in pids]
    found = _grown(hosted(), keys, chance, int(samples), settle=partial(_until_at_rest, hosts))
    return found | {"hosts_cpu_s": found.pop("settled_at")}


def _grown(
    signer: KeyBackend,
    keys: list[str],
    chance: random.Random,
    samples: int,
    *,
    settle: Callable[[], float],
) -> Figures:
    began, worked = time.perf_counter(), time.process_time()
    signer.check()
    start, start_cpu = time.perf_counter() - began, time.process_time() - worked
    first = [_timed(partial(signer.sign, uri, b"x", RSA)) for uri in keys[:50]]
    settled_at = settle()
    picked = chance.choices(keys, k=samples)
    later = sorted(_timed(partial(signer.sign, uri, b"x", RSA)) for uri in picked)
    return {
        "start_s": start,
        "start_cpu_s": start_cpu,
        "first_p50_ms": percentile(sorted(first), 0.5) * 1e3,
        "settled_at": settled_at,
        "p50_ms": percentile(later, 0.5) * 1e3,
        "p99_ms": percentile(later, 0.99) * 1e3,
        "memory_mb": machine.resident_mb(os.getpid()),
    }


def _until_at_rest(pids: list[int]) -> float:
    """Wait until the processes do nothing for a second; the most processor time that one has had, in
    seconds.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    before = [machine.worked_seconds(pid) for pid in pids]
    while time.monotonic() < deadline:
        time.sleep(1.0)
        now = [machine.worked_seconds(pid) for pid in pids]
        if sum(now) - sum(before) < 0.05:
            break
        before = now
    return max(before)


def _touch_all(signer: Pkcs11Backend, keys: list[str]) -> float:
    """Use three keys of every shard, as traffic does soon, and wait until its handles have been read."""
    by_token: dict[str, list[str]] = {}
    for uri in keys:
        by_token.setdefault(parse(uri).token, []).append(uri)
    for some in by_token.values():
        for uri in some[:3]:
            signer.sign(uri, b"x", RSA)
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        logins = [token._login for token in signer._tokens.values() if token._login is not None]
        if sum(len(login.handles) for login in logins) >= len(keys):
            break
        time.sleep(0.1)
    return time.process_time()


def sign(threads: str, seconds: str, beside: str) -> Figures:
    """Signatures through one backend; `beside` is "generate" to make keys in the same process meanwhile."""
    signer, keys = backend(), uris()
    hot = keys[:: max(1, len(keys) // HOT_KEYS)][:HOT_KEYS]
    for uri in hot:
        signer.sign(uri, b"x", RSA)
    stop = threading.Event()
    made: list[str] = []
    if beside == "generate":
        threading.Thread(target=_generate_until, args=(signer, stop, made), daemon=True).start()
    figures = _rate(lambda: signer.sign(secrets.choice(hot), b"x", RSA), int(threads), float(seconds))
    stop.set()
    return {**figures, "generated": len(made)}


def raw(threads: str, seconds: str) -> Figures:
    """The module with nothing of ours but its start: a session and a key object for each thread."""
    data, parsed, local = DIGEST_INFO[RSA] + bytes(32), parse(uris()[0]), threading.local()
    with module().entered():
        token = module().find_token(parsed.token)
        anchor = token.open(rw=True, user_pin=PIN)

        def one() -> None:
            if not hasattr(local, "key"):
                session = token.open(rw=True)
                wanted = {Attribute.CLASS: ObjectClass.PRIVATE_KEY, Attribute.ID: parsed.id}
                local.key = next(iter(list(session.get_objects(wanted))))
            local.key.sign(data, mechanism=Mechanism.RSA_PKCS)

        figures = _rate(one, int(threads), float(seconds))
        del anchor
    return figures


def software(threads: str, seconds: str) -> Figures:
    """`cryptography` with a key in memory."""
    key = rsa.generate_private_key(65537, 2048)
    return _rate(lambda: key.sign(b"x", padding.PKCS1v15(), hashes.SHA256()), int(threads), float(seconds))


def generate() -> Figures:
    """Make keys, and destroy them, until killed."""
    _generate_until(backend(), threading.Event(), [])
    return {}


def _generate_until(signer: KeyBackend, stop: threading.Event, made: list[str]) -> None:
    while not stop.is_set():
        uri = signer.generate_rsa(label="beside", spread=True).uri
        made.append(uri)
        signer.destroy(uri)


def _rate(action: Callable[[], object], threads: int, seconds: float) -> Figures:
    action()
    spare_garbage_collection()
    latencies: list[list[float]] = [[] for _ in range(threads)]
    errors: list[str] = []
    end = time.perf_counter() + seconds

    def work(mine: list[float]) -> None:
        try:
            while time.perf_counter() < end:
                mine.append(_timed(action))
        except Exception as error:  # noqa: BLE001  (the report tells)
            errors.append(type(error).__name__)

    workers = [threading.Thread(target=work, args=(mine,)) for mine in latencies]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    every = sorted(one for mine in latencies for one in mine)
    p50, p99 = (percentile(every, share) * 1e3 for share in (0.5, 0.99))
    return {"rate": len(every) / seconds, "p50_ms": p50, "p99_ms": p99, "errors": len(errors)}


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.stdout.write(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
