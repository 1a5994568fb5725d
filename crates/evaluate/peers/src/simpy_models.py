"""The two models in SimPy: python simpy_models.py mm1|pipe32 CUSTOMERS prints customers per second."""

import random
import sys
import time

import simpy


def mm1(customers):
    env = simpy.Environment()
    server = simpy.Resource(env)
    rng = random.Random(1)
    done = env.event()
    served = 0

    def customer():
        nonlocal served
        with server.request() as turn:
            yield turn
            yield env.timeout(rng.expovariate(1.0))
        served += 1
        if served == customers:
            done.succeed()

    def source():
        while True:
            yield env.timeout(rng.expovariate(0.8))
            env.process(customer())

    env.process(source())
    env.run(done)


def pipe32(laps):
    env = simpy.Environment()
    servers = [simpy.Resource(env) for _ in range(32)]
    rng = random.Random(1)
    done = env.event()
    finished = 0

    def customer(at):
        nonlocal finished
        while True:
            with servers[at].request() as turn:
                yield turn
                yield env.timeout(rng.expovariate(1.0))
            at = (at + 1) % 32
            if at == 0:
                finished += 1
                if finished == laps:
                    done.succeed()

    for i in range(64):
        env.process(customer(i % 32))
    env.run(done)


if __name__ == "__main__":
    model, customers = {"mm1": mm1, "pipe32": pipe32}[sys.argv[1]], int(sys.argv[2])
    start = time.perf_counter()
    model(customers)
    print(customers / (time.perf_counter() - start))
