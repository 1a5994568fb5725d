"""Datagrams per second through one link, from ``sendto`` to ``datagram_received``.

``python benches/datagrams.py`` on an installed wheel or with a release build of the native module.
``bursts``: 32 leave at one instant. ``paced``: one leaves every 100 us, by a timer each. ``echo``: one
datagram goes to and fro.
"""

import asyncio
import time

from fastpath.aio import VirtualNetwork

SPEC = """
[host.a]
[host.b]
[[link]]
between = ["a", "b"]
rate = "1Gbit"
delay = "1ms"
queue = "1000p"
"""
COUNT, SIZE, ROUNDS = 32_000, 1200, 5


class Counter(asyncio.DatagramProtocol):
    def __init__(self):
        self.count, self.done = 0, asyncio.get_running_loop().create_future()

    def datagram_received(self, data, addr):
        self.count += 1
        if self.count == COUNT:
            self.done.set_result(None)


class Echo(Counter):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.transport.sendto(data, addr)
        super().datagram_received(data, addr)


async def endpoints(network, kind):
    loop = asyncio.get_running_loop()
    _, server = await loop.create_datagram_endpoint(kind, local_addr=("b", 9))
    transport, _ = await loop.create_datagram_endpoint(kind, local_addr=("a", 9))
    return server, transport, (network.hosts["b"][0], 9)


async def bursts(network):
    server, transport, to = await endpoints(network, Counter)
    for _ in range(COUNT // 32):
        for _ in range(32):
            transport.sendto(bytes(SIZE), to)
        await asyncio.sleep(0.001)
    await server.done


async def paced(network):
    server, transport, to = await endpoints(network, Counter)
    for _ in range(COUNT):
        transport.sendto(bytes(SIZE), to)
        await asyncio.sleep(0.0001)
    await server.done


async def echo(network):
    server, transport, to = await endpoints(network, Echo)
    transport.sendto(bytes(SIZE), to)
    await server.done


def measured(program):
    network = VirtualNetwork(SPEC)
    begin = time.perf_counter()
    network.run(program(network))
    return network.frames["delivered"] / (time.perf_counter() - begin)


def main():
    for program in (bursts, paced, echo):
        rates = sorted(measured(program) for _ in range(ROUNDS))
        print(f"{program.__name__:<8} {rates[-1]:>10.0f} datagrams/s, the fastest of {ROUNDS} runs; median {rates[ROUNDS // 2]:.0f}")


if __name__ == "__main__":
    main()
