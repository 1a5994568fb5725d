"""The fixture `fastpath_network`."""

import re
from pathlib import Path

import fastpath as fp


def test_a_test_that_fails_keeps_its_captures_and_names_them(pytester):
    pytester.makepyfile(
        '''
        import asyncio

        SPEC = "[host.a]\\n[host.b]\\n[[link]]\\nbetween = ['a', 'b']\\ndelay = '1ms'"

        async def ping(network):
            loop = asyncio.get_running_loop()
            received = loop.create_future()

            class Inbox(asyncio.DatagramProtocol):
                def datagram_received(self, data, addr):
                    received.set_result(data)

            await loop.create_datagram_endpoint(Inbox, local_addr=("b", 9))
            with network.on("a"):
                where = {"remote_addr": ("b", 9)}
                transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, **where)
            transport.sendto(bytes(100))
            await received
            return loop.time()

        def test_passes(fastpath_network):
            network = fastpath_network(SPEC)
            assert network.run(ping(network)) == 0.001

        def test_fails(fastpath_network):
            network, other = fastpath_network(SPEC, seed=7), fastpath_network(SPEC)
            assert network.run(ping(network)) == 0.002

        def test_makes_none(fastpath_network):
            assert False
        '''
    )
    done = pytester.runpytest_subprocess("-p", "fastpath.pytest_plugin", "--basetemp", str(pytester.path / "kept"))
    done.assert_outcomes(passed=1, failed=2)
    text = done.stdout.str()
    [section] = re.findall(r"-+ fastpath captures -+\n(.*?): seed 7, until 0.001 s\n(.*?): seed 1, until 0.0 s\n", text)
    first, second = map(Path, section)
    assert [packet.length for packet in fp.Capture(first)] == [142, 142] and second.exists()
    kept = list((pytester.path / "kept").rglob("*.pcapng"))
    assert sorted(kept) == sorted([first, second]), "those of the test that passes are gone"
