"""A QUIC server and client of aioquic, for the tests of `fastpath quic-sim`.

    quic_sim.py server DIRECTORY ADDRESS PORT
    quic_sim.py client DIRECTORY ADDRESS PORT CONNECTIONS BYTES SECONDS

The server answers a number by that number of bytes. The client opens connections one after the
other, asks each for the bytes, again and again until the seconds have passed, and prints how many
answers were right.
"""

import asyncio
import datetime
import pathlib
import ssl
import sys
import time

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PATTERN = bytes(range(251))


def content(size: int) -> bytes:
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def certificate(directory: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(1)
    builder = builder.not_valid_before(now - datetime.timedelta(days=1))
    cert = builder.not_valid_after(now + datetime.timedelta(days=1)).sign(key, hashes.SHA256())
    paths = directory / "cert.pem", directory / "key.pem"
    paths[0].write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


class Server(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.asked: dict[int, bytes] = {}

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            request = self.asked.pop(event.stream_id, b"") + event.data
            if event.end_stream:
                self._quic.send_stream_data(event.stream_id, content(int(request)), end_stream=True)
                self.transmit()
            else:
                self.asked[event.stream_id] = request


async def run_server(directory: pathlib.Path, address: str, port: int) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["hq"])
    configuration.load_cert_chain(*certificate(directory))
    await serve(address, port, configuration=configuration, create_protocol=Server)
    print("ready", flush=True)
    await asyncio.Event().wait()


async def run_client(address: str, port: int, connections: int, size: int, seconds: float) -> None:
    right = 0
    for _ in range(connections):
        configuration = QuicConfiguration(is_client=True, alpn_protocols=["hq"], verify_mode=ssl.CERT_NONE)
        end = time.monotonic() + seconds
        async with connect(address, port, configuration=configuration) as connection:
            while True:
                reader, writer = await connection.create_stream()
                writer.write(str(size).encode())
                writer.write_eof()
                right += await reader.read() == content(size)
                if time.monotonic() >= end:
                    break
                await asyncio.sleep(0.02)
    print(right, flush=True)


def main() -> None:
    role, directory, address, port, *rest = sys.argv[1:]
    if role == "server":
        asyncio.run(run_server(pathlib.Path(directory), address, int(port)))
    else:
        connections, size, seconds = rest
        asyncio.run(run_client(address, int(port), int(connections), int(size), float(seconds)))


main()
