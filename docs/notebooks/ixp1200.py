# %% [markdown]
# # A simulated IXP1200
#
# The Intel IXP1200 is a network processor of 1999: six microengines with four threads each share two memories and a bus. The
# program `linkem` is the link emulator of Joglekar (2004), which ran on it. Both are descriptions with the source of each
# number.
# %%
import fastpath as fp
import matplotlib.pyplot as plt

machine = fp.Machine("ixp1200")
print(machine.text[:1400])
# %%
found = machine.simulate("linkem", "line-rate,size=64,ports=4,duration=5ms")
found
# %% [markdown]
# Which unit is the bottleneck changes with the size of frames. Frames of 64 bytes are limited by a microengine before egress.
# A second egress microengine helps where egress is the bottleneck.
# %%
table = fp.sweep("ixp1200", "linkem", "line-rate,ports=4,duration=5ms",
                 {"workload.size": [64, 128, 192, 256, 384, 512, 768, 1024, 1280, 1518],
                  "machine": ["ixp1200", "ixp1200-egress2"]})
columns = table.to_dict()
fig, axes = plt.subplots()
for name, label in (("ixp1200", "one egress microengine"), ("ixp1200-egress2", "two")):
    rows = [(size, pps * (size + 20) * 8 / 1e6) for size, of, pps
            in zip(columns["workload.size"], columns["machine"], columns["forwarded_pps"]) if of == name]
    axes.plot(*zip(*rows), marker=".", label=label)
axes.axhline(400, color="grey", linestyle=":", label="four ports of 100 Mbit/s")
axes.set(xlabel="bytes per frame", ylabel="Mbit/s forwarded, on the wire", ylim=(300, 410))
axes.legend();
# %%
for size, name, unit, share in zip(columns["workload.size"], columns["machine"], columns["bottleneck"], columns["share"]):
    if name == "ixp1200":
        print(f"{size:5} bytes: {100 * share:5.1f} % forwarded, bottleneck {unit}")
# %% [markdown]
# Equal seeds give equal runs, on any machine:
# %%
again = machine.simulate("linkem", "line-rate,size=64,ports=4,duration=5ms")
again.trace_hash == found.trace_hash
