# %% [markdown]
# # A first link
#
# Two hosts and a link with a rate, a delay and a queue. The same topology carries frames in virtual time, where every
# departure is exact, and programs in real time.
# %%
import fastpath as fp
import matplotlib.pyplot as plt
import numpy as np

net = fp.Topology(seed=1)
a, b = net.host("a"), net.host("b")
net.link(a, b, rate="10Mbit", delay="25ms", queue="50p")
net
# %% [markdown]
# ## In virtual time
#
# 300 frames of 1000 bytes enter in bursts of 100. The link sends one in 0.8 ms, so half of a burst waits in the queue, and
# what the queue does not hold is dropped.
# %%
burst = np.arange(100) * 100_000_000
times = np.concatenate([burst + start * 10**12 for start in (0.0, 0.2, 0.4)]).astype(np.uint64)
frames = np.zeros((len(times), 1000), np.uint8)
out = net.replay({"a": (times, frames)})
out
# %%
fig, axes = plt.subplots()
came = out.delivered
number = np.arange(len(out))
axes.plot(number[came], out.delay_ps() / 1e9, ".", label="delivered")
axes.plot(number[~came], np.full((~came).sum(), 25.0), "x", markersize=3, label="dropped: queue full")
axes.set(xlabel="frame", ylabel="time in the network, ms")
axes.legend();
# %% [markdown]
# The times are integers in picoseconds, and equal those of `fastpath replay --times`. The first frame takes 25 ms and the
# 0.8 ms of its 1000 bytes:
# %%
int(out.out_ps[0] - out.in_ps[0])
# %% [markdown]
# A mistake is an exception with its place and what to write:
# %%
wrong = fp.Topology()
wrong.link(wrong.host("a"), wrong.host("b"), rate="10Mbps/s", dealy="25ms")
try:
    wrong.check()
except fp.Mistakes as mistakes:
    print(mistakes)
# %% [markdown]
# ## In real time
#
# A lab makes each host a network namespace of this machine, with real programs in it. A lab needs Linux and root, or user
# namespaces.
# %%
with net.lab() as lab:
    print(lab["a"].cmd("ping -c 3 -i 0.2 b"))
    lab.link("a-b").set(delay="50ms")
    print(lab["a"].cmd("ping -c 3 -i 0.2 b"))
    flood = lab["a"].popen("ping -q -i 0.01 -s 900 -w 3 b > /dev/null")
    lab.watch(seconds=2)
    flood.wait()
