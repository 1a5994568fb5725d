"""Writes golden.csv: what statsmodels finds in these tables, to compare our reader and fit with. The tables are made up, in the
shapes in which testers and papers publish theirs; here each is read by hand, so that no guess of a reader is shared.

    pip install numpy statsmodels && python golden.py > golden.csv
"""

import csv
import numpy as np
import statsmodels.api as sm


def rows(name, delimiter=","):
    with open(name, encoding="utf-8-sig", newline="") as file:
        return [row for row in csv.reader(file, delimiter=delimiter) if row and not row[0].startswith("#")][1:]


def grouped(text, separator):
    return float(text.replace(separator, ""))


def tables():
    ndr = rows("ndr.csv")
    yield ("ndr.csv", 'Cores/NDR (pps)', "const,Packet Size (bytes)",
           [float(r[1]) / grouped(r[2], ",") for r in ndr], [[float(r[0]) for r in ndr]])
    testpmd = rows("testpmd.csv", ";")
    comma = lambda text: float(text.replace(",", "."))
    yield ("testpmd.csv", "cycles/packet", "const,Framesize [B]",
           [comma(r[3]) for r in testpmd], [[comma(r[0]) for r in testpmd]])
    runtime = [line.split() for line in open("runtime.txt")][1:]
    yield ("runtime.txt", "clocks/packet", "const,frame_size",
           [float(r[2]) for r in runtime], [[float(r[0]) for r in runtime]])
    gbit = rows("gbit.csv")
    yield ("gbit.csv", "Cores*Frame size (B)/Throughput (Gbit/s)", "const,Frame size (B)",
           [float(r[2]) * float(r[0]) / float(r[1]) for r in gbit], [[float(r[0]) for r in gbit]])
    steps = [[float(x) for x in line.strip().strip("|").split("|")] for line in list(open("steps.md"))[2:]]
    yield ("steps.md", "T (ns)", "const,size,h",
           [r[2] for r in steps], [[r[0] for r in steps], [r[1] for r in steps]])
    swiss = rows("apostrophes.csv", ";")
    yield ("apostrophes.csv", "1/Rate (pps)", "const,Size",
           [1 / grouped(r[1], "'") for r in swiss], [[float(r[0]) for r in swiss]])
    names = rows("names.csv")
    yield ("names.csv", "1/NDR [Mpps]", "const,Frame size",
           [1 / float(r[2]) for r in names], [[float(r[1].rstrip("B")) for r in names]])


def main():
    print("file;y;terms;term;value;low;high")
    for file, y, terms, measured, columns in tables():
        x = np.column_stack([np.ones(len(measured)), *columns])
        fit = sm.OLS(np.array(measured), x).fit()
        for term, value, (low, high) in zip(terms.split(","), fit.params, fit.conf_int()):
            print(f"{file};{y};{terms};{term};{float(value)!r};{float(low)!r};{float(high)!r}")


if __name__ == "__main__":
    main()
