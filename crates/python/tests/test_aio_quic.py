"""aioquic's own client and server, unmodified, over networks in virtual time."""

import asyncio
import base64
import ssl
from pathlib import Path

import pytest

import fastpath as fp
from fastpath.aio import VirtualNetwork

pytest.importorskip("aioquic")
from aioquic.asyncio import connect, serve  # noqa: E402
from aioquic.asyncio.protocol import QuicConnectionProtocol  # noqa: E402
from aioquic.quic.configuration import QuicConfiguration  # noqa: E402
from aioquic.quic.events import ConnectionTerminated  # noqa: E402

TLS = Path(__file__).parents[2] / "sockets/tests/tls"
SPEC = "[host.client]\n[host.server]\n[[link]]\nbetween = ['client', 'server']\n"


def pem(kind, name):
    text = base64.encodebytes((TLS / name).read_bytes()).decode()
    return f"-----BEGIN {kind}-----\n{text}-----END {kind}-----\n"


@pytest.fixture(scope="module")
def configurations(tmp_path_factory):
    """Configurations of a client and a server, with one key for all runs: a new one has another length."""
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    certificate.write_text(pem("CERTIFICATE", "certificate.der"))
    key.write_text(pem("PRIVATE KEY", "key.der"))

    def make():
        server = QuicConfiguration(is_client=False, alpn_protocols=["test"])
        server.load_cert_chain(certificate, key)
        client = QuicConfiguration(is_client=True, alpn_protocols=["test"])
        client.load_verify_locations(str(certificate))
        return client, server

    return make


def answer(size):
    """Return a handler of streams that answers each request with that many bytes."""

    def handle(reader, writer):
        async def respond():
            await reader.read()
            writer.write(bytes(size))
            writer.write_eof()

        asyncio.get_running_loop().create_task(respond())

    return handle


async def download(client, name="server"):
    """Download from the server. Returns how many bytes came, and when the last of them did."""
    async with connect(name, 4433, configuration=client) as connection:
        reader, writer = await connection.create_stream()
        writer.write(b"get")
        writer.write_eof()
        found = len(await reader.read())
        at = asyncio.get_running_loop().time()
    return found, at


def run(network, configurations, size):
    client, server = configurations()

    async def main():
        with network.on("server"):
            serving = await serve("::", 4433, configuration=server, stream_handler=answer(size))
        with network.on("client"):
            found = await download(client)
        serving.close()
        return found

    return network.run(main())


def test_a_download_takes_the_time_of_its_bytes_on_the_link(configurations):
    network = VirtualNetwork(SPEC + "rate = '20Mbit'\ndelay = '10ms'\nqueue = '200p'")
    found, at = run(network, configurations, 1_000_000)
    # At 20 Mbit/s with headers, after two round trips; the window of reno grows meanwhile.
    assert found == 1_000_000 and 0.44 < at < 0.8
    assert network.discarded.no_socket == 0


def lossy(tmp_path, configurations, number, seed):
    network = VirtualNetwork(SPEC + "rate = '10Mbit'\ndelay = '15ms'\nloss = '2%'\nqueue = '50p'", seed=seed)
    path = tmp_path / f"{number}.pcapng"
    network.capture(path)
    found, at = run(network, configurations, 300_000)
    assert found == 300_000
    return at, [(packet.time_ns, packet.length) for packet in fp.Capture(path)]


def test_the_same_seed_gives_the_times_and_sizes_of_all_packets(tmp_path, configurations):
    first = lossy(tmp_path, configurations, 0, 5)
    assert len(first[1]) > 300
    for number in range(1, 4):
        assert lossy(tmp_path, configurations, number, 5) == first
    assert lossy(tmp_path, configurations, 4, 6) != first


def test_the_log_says_which_packets_were_lost(tmp_path, configurations):
    log = tmp_path / "log.pcapng"
    network = VirtualNetwork(SPEC + "rate = '10Mbit'\ndelay = '5ms'\nloss = '2%'", packet_log=log)
    run(network, configurations, 200_000)
    dropped = network.frames.dropped["loss"]
    assert dropped > 0 and log.read_bytes().count(b"dropped=loss") == dropped


def test_links_change_during_a_transfer(configurations):
    network = VirtualNetwork(SPEC + "rate = '20Mbit'\ndelay = '5ms'")
    client, server = configurations()

    async def main():
        loop = asyncio.get_running_loop()
        link = network.link("client-server")
        # Ten times slower, then away for two seconds.
        loop.call_later(0.2, lambda: link.set(rate="2Mbit"))
        loop.call_later(0.5, lambda: link.set(state="down"))
        loop.call_later(2.5, lambda: link.set(state="up"))
        with network.on("server"):
            await serve("0.0.0.0", 4433, configuration=server, stream_handler=answer(1_000_000))
        with network.on("client"):
            return await download(client)

    found, at = network.run(main())
    assert found == 1_000_000 and 4 < at < 10


def test_a_connection_through_a_nat_that_forgets_it_migrates(configurations):
    # The mapping lives for two seconds (RFC 4787 asks for two minutes), the connection longer.
    network = VirtualNetwork(
        "[host.client]\n[nat.home]\ninside = ['client-home']\ntimeouts = { udp = '2s' }\nport_preservation = false\n[host.server]\n"
        "[[link]]\nbetween = ['client', 'home']\n[[link]]\nbetween = ['home', 'server']\ndelay = '10ms'\nrate = '50Mbit'"
    )
    client, server = configurations()
    seen = []

    class Seen(QuicConnectionProtocol):
        def datagram_received(self, data, addr):
            if not seen or seen[-1] != addr:
                seen.append(addr)
            super().datagram_received(data, addr)

    async def main():
        with network.on("server"):
            await serve("::", 4433, configuration=server, create_protocol=Seen, stream_handler=answer(20_000))
        with network.on("client"):
            async with connect("server", 4433, configuration=client) as connection:
                for _ in range(3):
                    reader, writer = await connection.create_stream()
                    writer.write(b"get")
                    writer.write_eof()
                    assert len(await reader.read()) == 20_000
                    await asyncio.sleep(5)

    network.run(main())
    # The end of the connection comes from another port too.
    assert len(seen) == 4 == len(set(seen)), seen
    assert {addr[0] for addr in seen} == {seen[0][0]} != {"::ffff:" + network.hosts["client"][0]}


def test_a_dead_link_ends_the_connection_at_its_idle_timeout(configurations):
    network = VirtualNetwork(SPEC + "loss = '100%'")
    client, _ = configurations()
    client.idle_timeout = 30
    ended = []

    class Ended(QuicConnectionProtocol):
        def quic_event_received(self, event):
            if isinstance(event, ConnectionTerminated):
                ended.append(asyncio.get_running_loop().time())

    async def main():
        with pytest.raises(ConnectionError):
            async with connect("server", 4433, configuration=client, create_protocol=Ended):
                pass

    network.run(main(), host="client")
    assert ended == [pytest.approx(30, abs=1e-6)]


def test_many_clients_of_a_server_share_a_bottleneck(configurations):
    hosts = [f"client{n}" for n in range(5)]
    links = "".join(f"[host.{host}]\n[[link]]\nbetween = ['{host}', 'r']\ndelay = '5ms'\n" for host in hosts)
    network = VirtualNetwork(
        f"[router.r]\n[host.server]\n{links}[[link]]\nbetween = ['r', 'server']\nrate = '10Mbit'\nqueue = 'fq-codel'"
    )
    _, server = configurations()

    async def main():
        with network.on("server"):
            await serve("::", 4433, configuration=server, stream_handler=answer(100_000))
        tasks = []
        for host in hosts:
            with network.on(host):
                tasks.append(asyncio.create_task(download(configurations()[0])))
        return await asyncio.gather(*tasks)

    found = network.run(main())
    assert [size for size, _ in found] == [100_000] * 5
    # Half a megabyte at 10 Mbit/s, and the handshakes.
    assert 0.4 < max(at for _, at in found) < 1.0


def test_certificates_are_still_checked(configurations):
    network = VirtualNetwork(SPEC, names={"other": "server"})
    client, server = configurations()
    client.verify_mode = ssl.CERT_REQUIRED

    async def main():
        with network.on("server"):
            await serve("::", 4433, configuration=server)
        with network.on("client"), pytest.raises(ConnectionError):
            await download(client, "other")

    network.run(main())


def test_the_example_shows_the_connection_move(capsys):
    example = Path(__file__).parents[1] / "examples/rebinding_nat.py"
    text = example.read_text()
    assert text.count("\n") <= 40
    exec(compile(text, str(example), "exec"), {})
    ports = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert len(set(ports)) == 2 and ports[0] != ports[-1]
