"""`python -m bench.trust.alone SECONDS`: bare signatures and checks in one process; prints JSON."""

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import django

django.setup()

from cryptography.hazmat.primitives.asymmetric import ec  # noqa: E402
from cryptography.hazmat.primitives.hashes import SHA256  # noqa: E402

from bench.trust.calls import ProofMaker  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from compliance.keys import HsmECPrivateKey, private_key  # noqa: E402
from delegation import proofs  # noqa: E402
from delegation.jose import dpop  # noqa: E402
from delegation.proofs import PresentedProof, Proof  # noqa: E402
from delegation.token_keys import keys  # noqa: E402

MESSAGE = b"a" * 700
SIGNERS = 8
GROUP = 50
URL = "https://api.example/v1/things"
TOKEN = "t" * 900


def rate(work: Callable[[], int], seconds: float) -> float:
    """How many a second, of what `work` says it did."""
    began, done = time.perf_counter(), 0
    while (spent := time.perf_counter() - began) < seconds:
        done += work()
    return done / spent


def hsm(seconds: float) -> float:
    """Signatures of the live token key by several threads."""
    with environments.use(Environment.LIVE):
        key = private_key(Environment.LIVE, keys.signing_key().uri)
    if not isinstance(key, HsmECPrivateKey):
        raise TypeError("the token key is on P-256")
    algorithm = ec.ECDSA(SHA256())

    def work() -> int:
        key.sign(MESSAGE, algorithm)
        return 1

    with ThreadPoolExecutor(SIGNERS) as pool:
        return sum(pool.map(lambda _: rate(work, seconds), range(SIGNERS)))


def ecdsa(seconds: float) -> float:
    """Verifications in one thread."""
    private, algorithm = ec.generate_private_key(ec.SECP256R1()), ec.ECDSA(SHA256())
    public, signature = private.public_key(), private.sign(MESSAGE, algorithm)

    def work() -> int:
        public.verify(signature, MESSAGE, algorithm)
        return 1

    return rate(work, seconds)


def proof(seconds: float) -> float:
    """Checks without a look at used ones."""
    text, moment = ProofMaker().proof("POST", URL, TOKEN), now()

    def work() -> int:
        dpop.check(text, method="POST", uri=URL, access_token=TOKEN, now=moment)
        return 1

    return rate(work, seconds)


def proofs_of(group: int, seconds: float) -> float:
    """Whole checks of new proofs, so many at once; what making them takes is taken off."""
    maker, spent, done = ProofMaker(), 0.0, 0
    with environments.use(Environment.LIVE):
        while spent < seconds:
            asked = [
                PresentedProof(maker.proof("POST", URL, TOKEN), "POST", URL, TOKEN) for _ in range(group)
            ]
            began = time.perf_counter()
            found = proofs.check_each(asked, now=now())
            spent += time.perf_counter() - began
            if not all(isinstance(one, Proof) for one in found):
                raise ValueError("a new proof was refused")
            done += group
    return done / spent


def main(seconds: float) -> None:
    """Measure one after the other."""
    found = {
        "hsm": hsm(seconds),
        "ecdsa": ecdsa(seconds),
        "proof": proof(seconds),
        "proof_once": proofs_of(1, seconds),
        "proof_group": proofs_of(GROUP, seconds),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(float(sys.argv[1]))
