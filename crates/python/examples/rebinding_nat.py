"""aioquic through a NAT that rebinds: the server sees the connection move to another port."""

import asyncio
import datetime
import ssl

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastpath.aio import VirtualNetwork

network = VirtualNetwork("""
    host = { client = {}, server = {} }
    nat.home = { inside = ["client-home"], port_preservation = false }
    event = [{ at = "3s", nat = "home", rebind = "port" }]
    [[link]]
    between = ["client", "home"]
    delay = "20ms"
    [[link]]
    between = ["home", "server"] """)
key, name, day = Ed25519PrivateKey.generate(), x509.Name([]), datetime.datetime.today()
signed = x509.CertificateBuilder(name, name, key.public_key(), 1, day, day).sign(key, None)
server = QuicConfiguration(is_client=False, alpn_protocols=["x"], certificate=signed, private_key=key)
client = QuicConfiguration(alpn_protocols=["x"], verify_mode=ssl.CERT_NONE)

class Shown(QuicConnectionProtocol):
    def datagram_received(self, data, addr):
        print(f"{self._loop.time():7.3f} s: {len(data)} bytes from port {addr[1]}")
        super().datagram_received(data, addr)

async def main():
    with network.on("server"):
        await serve("::", 4433, configuration=server, create_protocol=Shown)
    with network.on("client"):
        async with connect("server", 4433, configuration=client) as connection:
            await asyncio.sleep(5)
            await connection.ping()

network.run(main())
