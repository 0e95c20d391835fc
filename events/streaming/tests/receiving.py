"""A syslog server over TLS on loopback, well and badly behaved, and a certificate for it."""

import datetime as dt
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Syslog:
    """`messages`: the frames read so far. `ends`: how it ends connections, the last for ever."""

    address: str = ""
    messages: list[bytes] = field(default_factory=list)
    ends: list[str] = field(default_factory=lambda: ["answer"])
    connections: int = 0


def certificate(folder: Path, name: str) -> Path:
    """Write `<name>.pem`, a self-signed certificate of the name with its key; return its path."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / f"{name}.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@contextmanager
def syslog(certificate_file: Path) -> Iterator[Syslog]:
    """A server until the end of the block."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Syslog(address=f"localhost:{listener.getsockname()[1]}")
        thread = threading.Thread(target=_accept, args=(listener, context, found))
        thread.start()
        try:
            yield found
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def _accept(listener: socket.socket, context: ssl.SSLContext, server: Syslog) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with suppress(OSError), connection:
            connection.settimeout(10)
            end = server.ends[min(server.connections, len(server.ends) - 1)]
            server.connections += 1
            with context.wrap_socket(connection, server_side=True) as secure:
                _read(secure, server, end)


def _read(secure: ssl.SSLSocket, server: Syslog, end: str) -> None:
    if end == "die":
        secure.recv(1)
        secure.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return
    octets = bytearray()
    while piece := secure.recv(65536):
        octets += piece
    while octets:
        count, _, rest = bytes(octets).partition(b" ")
        server.messages.append(rest[: int(count)])
        octets = bytearray(rest[int(count) :])
    if end == "answer":
        secure.unwrap()
    elif end == "silent":
        with suppress(TimeoutError):
            socket.socket.recv(secure, 1)
