# %% [markdown]
# # Congestion control over active queue management
#
# One TCP connection fills a link of 20 Mbit/s with a round-trip time of 40 ms. What the queue does decides how long a packet
# waits. The loss-based controls Cubic and Reno fill whatever buffer there is; CoDel (RFC 8289), FQ-CoDel (RFC 8290) and PIE
# (RFC 8033) keep it short.
# %%
import json

import fastpath as fp
import matplotlib.pyplot as plt

QUEUES = {"fifo": "400p", "codel": "codel", "fq-codel": "fq-codel", "pie": "pie"}
CONTROLS = open("/proc/sys/net/ipv4/tcp_available_congestion_control").read().split()
CONTROLS = [name for name in ("cubic", "reno", "bbr") if name in CONTROLS]
SECONDS = 8


def topology(queue):
    net = fp.Topology(seed=1)
    net.link(net.host("sender"), net.host("receiver"), rate="20Mbit", delay="20ms", queue=queue)
    return net


topology("codel")
# %% [markdown]
# `iperf3` runs in the two hosts, and reports the round-trip time that TCP sees.
# %%
def run(queue, control):
    with topology(queue).lab() as lab:
        server = lab["receiver"].popen("exec iperf3 -s -1 --forceflush", stdout=-1)
        server.stdout.readline(), server.stdout.readline()
        words = f"iperf3 -c receiver -t {SECONDS} -i 0.25 -C {control} --json"
        report = json.loads(lab["sender"].run(words, capture_output=True).stdout)
        server.wait()
    return report


reports = {(name, control): run(queue, control) for name, queue in QUEUES.items() for control in CONTROLS}
# %%
fig, all_axes = plt.subplots(1, len(QUEUES), sharey=True, figsize=(9, 3))
for axes, name in zip(all_axes, QUEUES):
    for control in CONTROLS:
        streams = [interval["streams"][0] for interval in reports[name, control]["intervals"]]
        axes.plot([s["end"] for s in streams], [s["rtt"] / 1000 for s in streams], label=control)
    axes.set(title=name, xlabel="s")
all_axes[0].set_ylabel("round-trip time, ms")
all_axes[0].legend()
fig.tight_layout()
# %%
print(f"{'queue':10}{'control':9}{'goodput, Mbit/s':>16}{'mean RTT, ms':>14}{'retransmits':>13}")
for (name, control), report in reports.items():
    sent, received = report["end"]["streams"][0]["sender"], report["end"]["sum_received"]
    print(f"{name:10}{control:9}{received['bits_per_second'] / 1e6:16.2f}"
          f"{sent['mean_rtt'] / 1000:14.1f}{sent['retransmits']:13}")
