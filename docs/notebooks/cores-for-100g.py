# %% [markdown]
# # Cores for 100 Gbit/s
#
# How many cores does a software switch need for 100 Gbit/s? The simulated machine is one Xeon E5-2687W v4 with a
# 100-Gbit/s NIC under DPDK, whose costs were published (Netcope 2017). `h` is the number of processing steps per packet.
# %%
import fastpath as fp
import matplotlib.pyplot as plt

machine = fp.Machine("xeon-e5-2687wv4")
machine.simulate("netcope", "line-rate,size=512,duration=1ms", set={"program.h": 10})
# %% [markdown]
# A sweep over cores and frame sizes uses all cores of this machine, or, with `client=`, a Dask cluster. The table is the
# same.
# %%
table = fp.sweep("xeon-e5-2687wv4", "netcope", "line-rate,duration=500us",
                 {"machine.cpu.cores": "1..12", "workload.size": [64, 128, 256, 512, 1518]}, set={"program.h": 10})
table
# %%
columns = table.to_dict()
rows = list(zip(columns["machine.cpu.cores"], columns["workload.size"], columns["forwarded_pps"], columns["share"]))
fig, axes = plt.subplots()
for size in (64, 128, 256, 512, 1518):
    points = [(cores, pps * (size + 20) * 8 / 1e9) for cores, of, pps, _ in rows if of == size]
    axes.plot(*zip(*points), marker=".", label=f"{size} bytes")
axes.axhline(100, color="grey", linestyle=":")
axes.set(xlabel="cores", ylabel="Gbit/s on the wire")
axes.legend();
# %% [markdown]
# The fewest cores that forward at least 99.9 % of the line rate:
# %%
for size in (64, 128, 256, 512, 1518):
    enough = [cores for cores, of, _, share in rows if of == size and share >= 0.999]
    print(f"{size:5} bytes: {min(enough, default='more than 12')}")
# %% [markdown]
# ## Costs of your own
#
# Costs come from measurements: a fit has an interval for each term. Here are the published points of the same machine,
# in nanoseconds per packet of `p` bytes and `h` steps.
# %%
points = {"p": [64, 64, 512, 512, 1518, 1518], "h": [0, 10, 0, 10, 0, 10],
          "T_ns": [45.2, 85.6, 90.1, 131.2, 191.8, 232.7]}
fp.fit(points, "T_ns", "const,p,h")
