"""Sends UDP datagrams with their numbers in virtual time: python3 send.py busy|idle."""

import random
import socket
import sys
import time

pattern = sys.argv[1]
rng = random.Random(1)
# Three flows, also told apart by their Type of Service.
flows = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
for number, (flow, tos) in enumerate(zip(flows, [0x10, 0x00, 0x08])):
    flow.bind(("10.0.1.1", 5000 + number))
    flow.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
sent = 0


def send(size):
    global sent
    rng.choice(flows).sendto(sent.to_bytes(4, "big") + bytes(size - 4), ("10.0.2.1", 9))
    sent += 1


time.sleep(0.5)
end = time.monotonic() + 3
if pattern == "busy":
    # A queue that does not run empty: 11 Mbit/s on average into 10.
    for _ in range(40):
        send(1400)
while time.monotonic() < end:
    if pattern == "busy":
        for _ in range(rng.randint(1, 6)):
            send(rng.choice([100, 600, 1400, 1400]))
        time.sleep(rng.uniform(0, 0.0045))
    else:
        for _ in range(rng.randint(1, 20)):
            send(rng.randint(20, 1400))
        time.sleep(rng.expovariate(40))
