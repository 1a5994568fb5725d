"""The event loop of asyncio in virtual time."""

import asyncio
import errno
import random
import socket
import threading

import pytest

import fastpath as fp
from fastpath.aio import Stalled, Unsupported, VirtualEventLoop, VirtualNetwork, _loop

SPEC = "[host.client]\n[host.server]\n[[link]]\nbetween = ['client', 'server']\n"


def network(link="delay = '20ms'\nrate = '8Mbit'", **options):
    return VirtualNetwork(SPEC + link, **options)


class Inbox(asyncio.DatagramProtocol):
    """Keeps what arrives, with its time."""

    def __init__(self):
        self.found, self.errors, self.lost = [], [], 0
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.found.append((self.loop.time(), data, addr))

    def error_received(self, error):
        self.errors.append(error)

    def connection_lost(self, error):
        self.lost += 1


class Echo(Inbox):
    def datagram_received(self, data, addr):
        super().datagram_received(data, addr)
        self.transport.sendto(data, addr)


async def endpoint(kind=Inbox, **where):
    return (await asyncio.get_running_loop().create_datagram_endpoint(kind, **where))[1]


def test_time_is_that_of_the_network_and_sleeps_are_exact():
    net = network()

    async def main():
        loop = asyncio.get_running_loop()
        times = [loop.time()]
        for delay in (0.1, 1e-9, 0.2, 3600.0, 0):
            await asyncio.sleep(delay)
            times.append(loop.time())
        return times

    assert net.run(main()) == [0, 0.1, 0.1 + 1e-9, 0.1 + 1e-9 + 0.2, 3600.300000001, 3600.300000001]
    assert net.now_ps == 3600_300_000_001_000
    assert net.run(main())[0] == 3600.300000001, "time goes on"


@pytest.mark.parametrize("seed", range(5))
def test_timers_go_off_in_the_order_of_time_then_of_setting(seed):
    rng = random.Random(seed)
    plans = [(rng.choice([0, 1, 2.5, rng.random(), rng.random() * 1e6]), rng.random() < 0.4) for _ in range(600)]

    async def main():
        loop = asyncio.get_running_loop()
        fired, timers = [], []
        for number, (delay, _) in enumerate(plans):
            timers.append(loop.call_at(delay, lambda number=number: fired.append((number, loop.time()))))
        for timer, (_, is_cancelled) in zip(timers, plans):
            if is_cancelled:
                timer.cancel()
        await asyncio.sleep(1e6)
        return fired

    fired = network().run(main())
    kept = [(delay, number) for number, (delay, is_cancelled) in enumerate(plans) if not is_cancelled]
    assert [number for number, _ in fired] == [number for _, number in sorted(kept)]
    assert all(0 <= at - plans[number][0] <= 1e-9 for number, at in fired)


def test_the_time_of_a_timer_is_never_before_the_asked_one():
    rng = random.Random(1)
    for _ in range(20_000):
        when = rng.random() * 10 ** rng.uniform(-9, 7.2)
        ps = _loop._ps_of(when)
        assert ps / 10**12 >= when and abs(ps - when * 10**12) <= max(1, when * 10**12 * 2**-51)


def test_timers_that_are_set_again_for_the_time_that_has_come_let_time_pass(monkeypatch):
    async def main():
        loop = asyncio.get_running_loop()
        done, due = loop.create_future(), 0.5

        def again():
            # As aioquic does: what is due at this instant is done when it is over.
            if loop.time() > due:
                done.set_result(loop.time())
            else:
                loop.call_at(due, again)

        loop.call_at(due, again)
        return await done

    assert network().run(main()) == 0.500000001

    def for_ever():
        asyncio.get_running_loop().call_later(-1, for_ever)

    async def spins():
        for_ever()
        await asyncio.sleep(1)
        return asyncio.get_running_loop().time()

    assert network().run(spins()) == 1
    monkeypatch.setattr(_loop, "TURNS_MAX", 1000)
    with pytest.raises(Stalled, match=r"time stands at 9.99e-07 s: .*for_ever"):
        network().run(spins())


def test_datagrams_arrive_at_the_exact_time_with_the_addresses_of_their_hosts():
    net = network()

    async def main():
        server = await endpoint(Echo, local_addr=("server", 443))
        with net.on("client"):
            client = await endpoint(local_addr=("0.0.0.0", 0))
        assert client.transport.get_extra_info("sockname") == ("0.0.0.0", 49152)
        client.transport.sendto(bytes(958), (net.hosts["server"][0], 443))
        await asyncio.sleep(1)
        return server.found, client.found

    [(at, data, addr)], [(back, _, peer)] = net.run(main())
    # 958 bytes and 42 of headers take 1 ms at 8 Mbit/s.
    assert (at, len(data), addr) == (0.021, 958, (net.hosts["client"][0], 49152))
    assert (back, peer) == (0.042, (net.hosts["server"][0], 443))


def test_tasks_run_on_the_host_of_the_code_that_made_them():
    net = network()

    async def bound():
        await asyncio.sleep(0.5)
        return (await endpoint(local_addr=("::", 0))).transport.get_extra_info("socket").host

    async def main():
        with net.on("server"):
            on_server = asyncio.create_task(bound())
            assert net.host == "server"
        return await bound(), await on_server, net.host

    assert net.run(main(), host="client") == ("client", "server", "client")
    assert net.host is None


def test_a_socket_of_no_host_is_refused_with_what_to_write():
    async def main(**where):
        await endpoint(**where)

    with pytest.raises(fp.Error, match=r'which every host has: write with network.on\("HOST"\)'):
        network().run(main(local_addr=("0.0.0.0", 0)))
    with pytest.raises(OSError, match="no host has the address 127.0.0.1 .client: ") as raised:
        network().run(main(local_addr=("127.0.0.1", 0)))
    assert raised.value.errno == errno.EADDRNOTAVAIL
    with pytest.raises(fp.Error, match=r"no host x \(have: client, server\)"):
        network().on("x")

    async def twice():
        await endpoint(local_addr=("server", 443))
        await endpoint(local_addr=("server", 443))

    with pytest.raises(OSError, match="port 443 of host server is in use") as raised:
        network().run(twice())
    assert raised.value.errno == errno.EADDRINUSE


def test_both_families_reach_a_socket_of_every_address_as_in_linux():
    net = network()

    async def main():
        server = await endpoint(Echo, local_addr=(net.hosts["server"][1], 443))
        with net.on("server"):
            dual = await endpoint(Echo, local_addr=("::", 444))
            only_4 = await endpoint(Echo, local_addr=("0.0.0.0", 445))
        with net.on("client"):
            four, six = [await endpoint(local_addr=(any_, 0)) for any_ in ("0.0.0.0", "::")]
        v4, v6 = net.hosts["server"]
        six.transport.sendto(b"1", (v6, 443))
        six.transport.sendto(b"2", (f"::ffff:{v4}", 444))
        four.transport.sendto(b"3", (v4, 444))
        six.transport.sendto(b"4", ("server", 445))
        six.transport.sendto(b"5", (v6, 445))
        await asyncio.sleep(1)
        shown = [sorted((data, addr[0]) for _, data, addr in inbox.found) for inbox in (server, dual, only_4, six)]
        return shown, net.discarded.no_socket

    (server, dual, only_4, six), lost = net.run(main())
    c4, c6 = net.hosts["client"]
    s4, s6 = net.hosts["server"]
    assert server == [(b"1", c6)]
    assert dual == [(b"2", f"::ffff:{c4}"), (b"3", f"::ffff:{c4}")]
    assert only_4 == [(b"4", c4)] and lost == 1
    assert six == [(b"1", s6), (b"2", f"::ffff:{s4}"), (b"4", f"::ffff:{s4}")]


def test_connected_endpoints_send_to_their_peer_and_hear_it_only():
    net = network()

    async def main():
        server, other = [await endpoint(local_addr=("server", port)) for port in (443, 444)]
        with net.on("client"):
            client = await endpoint(remote_addr=("server", 443))
        client.transport.sendto(b"to the peer")
        to = (net.hosts["client"][0], 49152)
        server.transport.sendto(b"from the peer", to)
        other.transport.sendto(b"from another", to)
        await asyncio.sleep(1)
        assert client.transport.get_extra_info("peername") == (net.hosts["server"][0], 443)
        with pytest.raises(ValueError, match="sends to .* only"):
            client.transport.sendto(b"", to)
        return [data for _, data, _ in client.found], [data for _, data, _ in server.found]

    assert net.run(main()) == ([b"from the peer"], [b"to the peer"])


def test_what_cannot_be_sent_is_an_error_of_the_protocol():
    net = network("mtu = 1280")

    async def main():
        with net.on("client"):
            client = await endpoint(local_addr=("0.0.0.0", 0))
        client.transport.sendto(bytes(1253), ("server", 1))
        client.transport.sendto(b"", ("192.0.2.1", 1))
        with pytest.raises(TypeError, match="data is str"):
            client.transport.sendto("text", ("server", 1))
        client.transport.close()
        client.transport.sendto(b"ignored", ("server", 1))
        await asyncio.sleep(0)
        again = await endpoint(local_addr=(net.hosts["client"][0], 49152))
        assert client.lost == 1 and again.transport.get_extra_info("sockname")[1] == 49152
        return client.errors

    long, far = net.run(main())
    assert (long.errno, far.errno) == (errno.EMSGSIZE, errno.ENETUNREACH)
    assert "at most 1252" in str(long) and "no route to 192.0.2.1" in str(far)


def test_names_are_those_of_the_topology():
    net = network(names={"localhost": "server", "127.0.0.1": "server"})

    async def main():
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo("server", 443, type=socket.SOCK_DGRAM)
        v4, v6 = net.hosts["server"]
        assert [info[4] for info in infos] == [(v4, 443), (v6, 443, 0, 0)]
        for name in ("localhost", "127.0.0.1"):
            assert await loop.getaddrinfo(name, "443", type=socket.SOCK_DGRAM) == infos
        assert (await loop.getaddrinfo(v6, None, family=socket.AF_INET6))[0][4] == (v6, 0, 0, 0)
        assert await loop.getnameinfo((v6, 443, 0, 0)) == ("server", "443")
        assert await loop.getnameinfo(("192.0.2.1", 1)) == ("192.0.2.1", "1")
        with pytest.raises(socket.gaierror, match=r"no host example.org in the network \(have: client, server, localhost"):
            await loop.getaddrinfo("example.org", 443)
        with pytest.raises(socket.gaierror, match="services have no names"):
            await loop.getaddrinfo("server", "https")
        with pytest.raises(socket.gaierror, match="no address of family"):
            await loop.getaddrinfo(v4, 1, family=socket.AF_INET6)

    net.run(main())
    with pytest.raises(fp.Error, match=r"names\['x'\]: no host y"):
        network(names={"x": "y"})


def test_programs_that_make_their_sockets_themselves_get_virtual_ones():
    net = network()

    async def main():
        sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("::", 0, 0, 0))
        assert isinstance(sock, socket.socket) and sock.getsockname() == ("::", 49152, 0, 0)
        client = await endpoint(sock=sock)
        server = await endpoint(local_addr=("server", 9))
        client.transport.sendto(b"x", (f"::ffff:{net.hosts['server'][0]}", 9, 0, 0))
        await asyncio.sleep(1)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as real:
            assert isinstance(real, socket.socket) and real.fileno() >= 0
            with pytest.raises(Unsupported, match="sockets of the kernel"):
                await endpoint(sock=real)
        with pytest.raises(AttributeError, match="a socket in virtual time has no recvfrom"):
            sock.recvfrom(1)
        return server.found

    before = socket.socket
    assert len(net.run(main(), host="client")) == 1
    assert socket.socket is before


def test_ecn_and_the_v6only_option_of_sockets_count():
    net = network("queue = { kind = 'codel', ecn = true, target = '1us', interval = '1us' }\nrate = '1Mbit'")

    async def main():
        made = []
        for _ in range(2):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2 * len(made))
            made.append(await endpoint(sock=sock))
        await endpoint(local_addr=("server", 9))
        for client in made:
            for _ in range(20):
                client.transport.sendto(bytes(100), ("server", 9))
            await asyncio.sleep(1)
        return net.frames["dropped"]

    # Those that are marked by their sender are not dropped.
    dropped = sum(net.run(main(), host="client").values())
    assert 0 < dropped < 20


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda loop: asyncio.open_connection("server", 80), "virtual time has no TCP .create_connection.; use create_datagram"),
        (lambda loop: asyncio.start_server(print, "0.0.0.0", 80), "no TCP"),
        (lambda loop: asyncio.create_subprocess_exec("true"), "no processes and pipes .*run the program in a lab"),
        (lambda loop: loop.sock_recv(None, 1), "no operations on sockets"),
        (lambda loop: loop.create_unix_server(print, "x"), "no Unix sockets"),
        (lambda loop: loop.create_datagram_endpoint(Inbox, local_addr="/x"), "no Unix sockets"),
        (lambda loop: loop.create_datagram_endpoint(Inbox, local_addr=("server", 1), reuse_port=True), "reuse_port"),
    ],
)
def test_what_virtual_time_has_not_is_refused_with_what_to_do(call, said):
    async def main():
        await call(asyncio.get_running_loop())

    with pytest.raises(NotImplementedError, match=said) as raised:
        network().run(main())
    assert isinstance(raised.value, fp.Error)


def test_signals_and_readers_are_refused():
    async def main():
        loop = asyncio.get_running_loop()
        with pytest.raises(Unsupported, match="no signals .*KeyboardInterrupt"):
            loop.add_signal_handler(2, print)
        with pytest.raises(Unsupported, match="no files"):
            loop.add_reader(0, print)

    network().run(main())


def test_a_program_that_waits_for_nothing_ends_with_the_time_and_the_place():
    async def waits(event):
        await event.wait()

    async def main():
        await asyncio.sleep(1.5)
        event = asyncio.Event()
        other = asyncio.create_task(waits(event), name="other")
        await asyncio.sleep(0)
        await other

    with pytest.raises(Stalled, match=r"nothing happens after 1.5 s: no timer is set .*other \(.*test_aio.py:\d+ in waits\)"):
        network().run(main())


def test_a_program_that_waits_for_a_link_that_changes_for_ever_ends_too():
    net = fp.Topology()
    lte = net.trace("lte", [0, 1, 2], rate_mbps=[1, 2, 1])
    net.link(net.host("client"), net.host("server"), trace=lte)

    async def main():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stalled, match="nothing happens after 0.0 s"):
        VirtualNetwork(net).run(main())


def test_tasks_that_wake_one_another_for_ever_are_named(monkeypatch):
    monkeypatch.setattr(_loop, "TURNS_MAX", 1000)

    async def spins():
        while True:
            await asyncio.sleep(0)

    async def main():
        await asyncio.sleep(0.25)
        await asyncio.create_task(spins(), name="spinner")

    with pytest.raises(Stalled, match=r"time stands at 0.25 s: the loop has run 1000 times there, .*spinner \(.*in spins\)"):
        network().run(main())


def test_datagrams_over_links_without_delay_cannot_hold_time_either(monkeypatch):
    monkeypatch.setattr(_loop, "TURNS_MAX", 1000)
    net = network("")

    async def main():
        server = await endpoint(Echo, local_addr=("server", 9))
        client = await endpoint(Echo, local_addr=("client", 9))
        client.transport.sendto(b"ball", ("server", 9))
        await asyncio.sleep(1)
        return server

    with pytest.raises(Stalled, match="time stands at 0.0 s"):
        net.run(main())


def test_time_stands_while_functions_run_in_threads():
    async def main():
        loop = asyncio.get_running_loop()
        go_on = threading.Event()
        beside = loop.call_later(1e-9, go_on.set)

        def work():
            return go_on.wait(0.05), threading.current_thread() is threading.main_thread()

        found = await loop.run_in_executor(None, work)
        at = loop.time()
        await asyncio.sleep(1)
        assert go_on.is_set() and beside.when() == 1e-9
        return found, at

    assert network().run(main()) == ((False, False), 0)


def test_timeouts_and_cancelled_tasks_work_as_in_asyncio():
    async def main():
        loop = asyncio.get_running_loop()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(loop.create_future(), 2)
        for _ in range(500):
            await asyncio.wait_for(asyncio.sleep(0.001), 100)
        assert len(loop._timers) < 300, "cancelled timers leave the heap"
        forever = asyncio.create_task(asyncio.sleep(float("inf")))
        late = asyncio.create_task(asyncio.sleep(1e9))
        await asyncio.sleep(1)
        forever.cancel()
        late.cancel()
        with pytest.raises(ValueError):
            loop.call_at(float("nan"), print)
        return loop.time()

    assert network().run(main()) == pytest.approx(3.5)


def test_tasks_that_are_left_are_cancelled_and_their_sockets_closed():
    net, ended = network(), []

    async def left():
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            ended.append(asyncio.get_running_loop().time())
            raise

    async def main():
        await endpoint(local_addr=("server", 9))
        asyncio.create_task(left())
        await asyncio.sleep(1)

    net.run(main())
    net.run(main())
    assert ended == [1, 2]
    with pytest.raises(RuntimeError, match="boom"):

        async def fails():
            raise RuntimeError("boom")

        net.run(fails())


def test_a_network_runs_outside_of_loops_only():
    async def main():
        await asyncio.sleep(0)
        network().run(asyncio.sleep(1))

    with pytest.raises(fp.Error, match="from outside of event loops"):
        asyncio.run(main())


def test_the_loop_is_one_for_runners_of_asyncio():
    if not hasattr(asyncio, "Runner"):
        pytest.skip("asyncio.Runner is of Python 3.11")
    net = network()

    async def main():
        await asyncio.sleep(2)
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=lambda: VirtualEventLoop(net), debug=True) as runner:
        assert runner.run(main()) == 2


def test_links_change_while_datagrams_are_on_them():
    net = network("delay = '10ms'")

    async def main():
        server = await endpoint(local_addr=("server", 9))
        client = await endpoint(local_addr=("client", 9))
        client.transport.sendto(b"slow", ("server", 9))
        await asyncio.sleep(0.004)
        net.link("client-server").set(delay="1ms", from_="client")
        client.transport.sendto(b"fast", ("server", 9))
        await asyncio.sleep(0.1)
        net.link("client-server").set(state="down")
        client.transport.sendto(b"lost", ("server", 9))
        await asyncio.sleep(0.1)
        return server.found

    assert [(at, data) for at, data, _ in net.run(main())] == [(0.01, b"slow"), (0.01, b"fast")]


def test_traffic_of_a_topology_is_named():
    net = fp.Topology()
    net.link(net.host("a"), net.host("b"))
    net.traffic("a", "b", rate="1Mbit", name="camera")
    with pytest.warns(UserWarning, match="traffic camera is not sent"):
        VirtualNetwork(net)


def test_changes_that_cannot_be_are_named():
    net = network()
    with pytest.raises(fp.Error, match=r"no link x \(have: client-server\)"):
        net.link("x")
    link = net.link("client-server")
    with pytest.raises(fp.Mistakes, match="link client-server: .*dealy.*write"):
        link.set(dealy="1ms")
    with pytest.raises(fp.Mistakes, match="nan is not a quantity"):
        link.set(loss=float("nan"))
    with pytest.raises(fp.Error, match="link client-server has no end at x .has: client, server"):
        link.set(delay="1ms", from_="x")
    traced = fp.Topology()
    traced.link(traced.host("a"), traced.host("b"), name="l", trace=traced.trace("t", [0, 1], rate_mbps=[1, 2]))
    with pytest.raises(fp.Error, match="rate"):
        VirtualNetwork(traced).link("l").set(rate="1Mbit")


def run_lossy(path, seed):
    """Send 200 datagrams over a lossy link. Returns when they arrived."""
    net = network("rate = '1Mbit'\nloss = '20%'\ndelay = '5ms'", seed=seed, packet_log=path.with_suffix(".log"))
    net.capture(path, "server")

    async def main():
        server = await endpoint(local_addr=("server", 9))
        client = await endpoint(local_addr=("client", 9))
        for number in range(200):
            client.transport.sendto(bytes(number), ("server", 9))
            await asyncio.sleep(0.001)
        await asyncio.sleep(1)
        return [at for at, _, _ in server.found]

    return net.run(main()), net


def test_the_same_seed_gives_the_same_files(tmp_path):
    first, net = run_lossy(tmp_path / "1.pcapng", 1)
    second, _ = run_lossy(tmp_path / "2.pcapng", 1)
    other, _ = run_lossy(tmp_path / "3.pcapng", 2)
    assert first == second != other and 100 < len(first) < 200
    captures = [(tmp_path / f"{n}.pcapng").read_bytes() for n in (1, 2, 3)]
    logs = [(tmp_path / f"{n}.log").read_bytes() for n in (1, 2, 3)]
    assert captures[0] == captures[1] != captures[2] and logs[0] == logs[1] != logs[2]
    packets = list(fp.Capture(tmp_path / "1.pcapng"))
    assert [packet.time_ns for packet in packets] == [round(at * 1e9) for at in first]
    assert b"received=0.00" in captures[0] and b"dropped=loss" in logs[0]
    assert net.frames["dropped"] == {"loss": 200 - len(first)} and "seed 1" in repr(net)


def test_descriptions_come_as_topologies_texts_and_files(tmp_path):
    path = tmp_path / "net.toml"
    path.write_text(SPEC)
    net = fp.Topology(seed=9)
    net.link(net.host("client"), net.host("server"))
    made = [VirtualNetwork(given) for given in (SPEC, path, net)]
    assert [list(one.hosts) for one in made] == [["client", "server"]] * 3
    assert [one.seed for one in made] == [1, 1, 9] and VirtualNetwork(net, seed=3).seed == 3
    with pytest.raises(fp.Error, match=r"'net.toml' is not the text .*Path\('net.toml'\)"):
        VirtualNetwork("net.toml")
    with pytest.raises(fp.Mistakes, match=r"test_aio.py:\d+: line 2, column \d+ of the text: .*dealy"):
        VirtualNetwork("[[link]]\ndealy = 1\nbetween = ['a', 'b']\n")
    with pytest.raises(fp.Error, match="no host stranger"):
        made[0].capture(tmp_path / "x", "stranger")
