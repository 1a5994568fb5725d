"""asyncio in virtual time: programs on hosts of a network, without a clock.

>>> import asyncio
>>> from fastpath.aio import VirtualNetwork
>>> class Echo(asyncio.DatagramProtocol):
...     def connection_made(self, transport):
...         self.transport = transport
...     def datagram_received(self, data, addr):
...         self.transport.sendto(data, addr)
>>> class Client(asyncio.DatagramProtocol):
...     def datagram_received(self, data, addr):
...         self.received.set_result((data, addr))
>>> async def main():
...     loop = asyncio.get_running_loop()
...     client = Client()
...     client.received = loop.create_future()
...     await loop.create_datagram_endpoint(Echo, local_addr=("server", 7))
...     with network.on("client"):
...         transport, _ = await loop.create_datagram_endpoint(lambda: client, remote_addr=("server", 7))
...     transport.sendto(b"hello")
...     await client.received
...     return loop.time()
>>> network = VirtualNetwork("[host.client]\\n[host.server]\\n[[link]]\\nbetween = ['client', 'server']\\ndelay = '20ms'")
>>> network.run(main())
0.04

Time stands still while Python computes, and moves when no task can go on: to the next timer or
datagram. The same seed gives the same times of all packets, if the programs send the same.
"""

from __future__ import annotations

from ._loop import Stalled, Unsupported, VirtualEventLoop
from ._network import VirtualLink, VirtualNetwork

__all__ = ["Stalled", "Unsupported", "VirtualEventLoop", "VirtualLink", "VirtualNetwork"]
