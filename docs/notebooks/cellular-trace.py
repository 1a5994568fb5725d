# %% [markdown]
# # A cellular trace
#
# The rate of a cellular link changes many times a second. A trace is the values of a link over time. It may come from a file
# (mahimahi, CSV and others), from a preset such as `lte`, or, as here, from arrays.
# %%
import fastpath as fp
import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(7)
times_s = np.arange(0, 30, 0.25)
fading = np.convolve(rng.normal(0, 1, len(times_s) + 15), np.ones(16) / 4, mode="valid")
rate_mbps = np.clip(12 * np.exp(0.7 * fading), 0.5, 60).round(3)

net = fp.Topology(seed=1)
phone, server = net.host("phone"), net.host("server")
trace = net.trace("walk", times_s, rate_mbps=rate_mbps)
net.link(server, phone, delay="20ms", forward={"trace": trace, "queue": "600p"}, backward={"rate": "5Mbit"})
net
# %% [markdown]
# A sender at a constant 8 Mbit/s, in virtual time: 30 seconds take a fraction of one.
# %%
count = 20_000
gap_ps = int(1500 * 8 / 8e6 * 1e12)
out = net.replay({"server": (np.arange(count, dtype=np.uint64) * gap_ps, np.zeros((count, 1500), np.uint8))})
out
# %%
fig, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(6.4, 4.4))
above.step(times_s, rate_mbps, where="post", label="link")
seconds = out.out_ps[out.delivered] / 1e12
delivered, edges = np.histogram(seconds, bins=np.arange(0, 30.5, 0.5))
above.step(edges[:-1], delivered * 1500 * 8 / 0.5e6, where="post", label="delivered")
above.set_ylabel("Mbit/s")
above.legend()
every = slice(None, None, 40)
below.plot((out.in_ps[out.delivered] / 1e12)[every], (out.delay_ps() / 1e9)[every], linewidth=1)
below.set(xlabel="time, s", ylabel="delay, ms", yscale="log")
fig.tight_layout()
# %% [markdown]
# Presets have the values of access networks, with their sources. Each becomes ordinary values of a link:
# %%
print(f"{'preset':10}{'down':>12}{'up':>12}{'one way':>10}")
for preset in ("3g", "lte", "5g", "docsis", "dsl", "ftth", "starlink"):
    access = fp.Topology()
    access.link(access.host("client"), access.host("server"), preset=preset)
    link = access.check().description["links"][0]
    up, down = link["forward"], link["backward"]
    print(f"{preset:10}{down['rate']:>12}{up['rate']:>12}{down['delay']:>10}")
