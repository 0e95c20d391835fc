"""The log's side of a witness: submit a checkpoint, and accept only a cosignature that verifies."""

import io
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from threading import Thread
from typing import cast
from urllib.parse import urlsplit

import certifi

from auditlog.tlog.add_checkpoint import SIZE_CONTENT_TYPE, AddCheckpoint
from auditlog.tlog.errors import SignatureInvalid, TlogError
from auditlog.tlog.lines import read_decimal
from auditlog.tlog.notes import Note, Signature, VerifierKey, parse_signatures

MAX_ANSWER_BYTES = 64 * 1024
MAX_TEXT = 200


class SubmissionFailed(Exception):
    """Base: there is no cosignature; the text says why."""


class WitnessUnreachable(SubmissionFailed):
    """No complete HTTP answer came in time."""


class WitnessRefused(SubmissionFailed):
    """The witness answered something else than a cosignature that verifies."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"The witness answered {status}: {text}")
        self.status, self.text = status, text


class WitnessIsAt(SubmissionFailed):
    """The latest checkpoint of this log that the witness cosigned has `size` leaves: prove from there."""

    def __init__(self, size: int) -> None:
        super().__init__(f"The witness has a tree of {size} leaves")
        self.size = size


@dataclass(frozen=True)
class Reply:
    """An HTTP answer, its body as text."""

    status: int
    content_type: str
    text: str


def submit(
    url: str,
    *,
    old_size: int,
    proof: list[bytes],
    note: str,
    key: VerifierKey,
    deadline: float,
    ca_file: str | None = None,
) -> Signature:
    """Return the cosignature of a checkpoint by the witness whose submission prefix is `url`.

    `proof` leads from `old_size` leaves to the checkpoint in `note`. `deadline` is in seconds and bounds
    everything, name resolution included. `ca_file`: root certificates in PEM instead of the public ones.
    Redirects are not followed. Raises: WitnessIsAt if the witness has another size than `old_size`;
    WitnessRefused; WitnessUnreachable; Malformed if `note` is no note.
    """
    request = AddCheckpoint(old_size, proof, Note.parse(note))
    ends = time.monotonic() + deadline
    reply = _in_time(lambda: _post(url, request.encode().encode(), ends, ca_file), deadline)
    if reply.status == 200:
        return _cosignature(reply, request.note, key)
    if reply.status == 409 and reply.content_type == SIZE_CONTENT_TYPE:
        size = _size(reply)
        if size != old_size:
            raise WitnessIsAt(size)
    raise WitnessRefused(reply.status, _printable(reply.text[:MAX_TEXT]))


def _printable(text: str) -> str:
    """Return one line of what may be stored, logged and shown."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _cosignature(reply: Reply, note: Note, key: VerifierKey) -> Signature:
    try:
        for signature in parse_signatures(reply.text):
            if key.is_named_in(signature):
                key.verify(note.text, signature)
                return signature
        raise SignatureInvalid(f"No cosignature by {key.name}")
    except TlogError as error:
        raise WitnessRefused(reply.status, str(error)) from error


def _size(reply: Reply) -> int:
    try:
        return read_decimal(reply.text.removesuffix("\n"))
    except TlogError as error:
        raise WitnessRefused(reply.status, str(error)) from error


def _in_time(work: Callable[[], Reply], seconds: float) -> Reply:
    """Return what `work` returns, or raise when the time is over.

    In a thread, because the system's resolver takes no timeout and cannot be interrupted.
    """
    outcome: Future[Reply] = Future()
    too_late = WitnessUnreachable(f"No complete answer within {seconds:g} s")

    def work_and_tell() -> None:
        try:
            outcome.set_result(work())
        except TimeoutError:
            outcome.set_exception(too_late)
        except (OSError, HTTPException, ValueError) as failure:
            outcome.set_exception(WitnessUnreachable(f"{type(failure).__name__}: {failure}"))

    Thread(target=work_and_tell, name="witness-submission", daemon=True).start()
    try:
        return outcome.result(seconds)
    except TimeoutError as error:
        raise too_late from error


def _post(url: str, body: bytes, ends: float, ca_file: str | None) -> Reply:
    parts = urlsplit(f"{url.rstrip('/')}/add-checkpoint")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"not an HTTP URL: {url}")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with ExitStack() as resources:
        sock = resources.enter_context(socket.create_connection((parts.hostname, port), timeout=_left(ends)))
        if parts.scheme == "https":
            sock.settimeout(_left(ends))
            context = ssl.create_default_context(cafile=ca_file or certifi.where())
            sock = resources.enter_context(context.wrap_socket(sock, server_hostname=parts.hostname))
        connection = HTTPConnection(parts.hostname, port)
        connection.sock = cast("socket.socket", _TimedSocket(sock, ends))
        connection.request("POST", parts.path, body, {"Content-Type": "text/plain", "Connection": "close"})
        response = connection.getresponse()
        content = response.read(MAX_ANSWER_BYTES + 1)
    if len(content) > MAX_ANSWER_BYTES:
        raise ValueError(f"an answer of more than {MAX_ANSWER_BYTES} octets")
    content_type = response.headers.get_content_type()
    return Reply(response.status, content_type, content.decode(errors="replace"))


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time is over")
    return left


class _TimedSocket(io.RawIOBase):
    """What `http.client` uses of a socket; every operation ends at the deadline of all."""

    def __init__(self, sock: socket.socket, ends: float) -> None:
        self._sock, self._ends = sock, ends

    def sendall(self, octets: bytes) -> None:
        self._sock.settimeout(_left(self._ends))
        self._sock.sendall(octets)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedSocket(self._sock, self._ends))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._sock.settimeout(_left(self._ends))
        return self._sock.recv_into(buffer)
