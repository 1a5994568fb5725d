"""Writes mlrsearch.csv: what MLRsearch (PyPI, 1.2.1) finds for devices whose loss is known, to compare our search with.

    pip install MLRsearch==1.2.1 && python mlrsearch.py > mlrsearch.csv
"""

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal

# capacity: packets/s carried without loss. steepness: share of what exceeds it that is lost (1: a hard knee).
DEVICES = [(20e3, 1.0), (333e3, 1.0), (1e6, 1.0), (7.3e6, 1.0), (9.9e6, 1.0), (50e6, 1.0),
           (1e6, 0.1), (4.2e6, 0.1), (1e6, 0.01), (4.2e6, 0.01)]
GOALS = [0.0, 0.005, 0.05]
LEAST, MOST, WIDTH, DURATION = 1e4, 1e7, 0.005, 1.0


class Device(AbstractMeasurer):
    def __init__(self, capacity, steepness):
        self.capacity, self.steepness, self.seconds = capacity, steepness, 0.0

    def measure(self, intended_duration, intended_load):
        self.seconds += intended_duration
        offered = int(intended_load * intended_duration)
        lost = int(max(0.0, intended_load - self.capacity) * self.steepness * intended_duration)
        return MeasurementResult(
            intended_duration=intended_duration, intended_load=intended_load,
            offered_count=offered, loss_count=lost, duration_with_overheads=intended_duration,
        )


def main():
    print("capacity,steepness,loss_ratio,lower_pps,upper_pps,conditional_pps,seconds")
    for capacity, steepness in DEVICES:
        config = Config()
        config.goals = [
            SearchGoal(loss_ratio=ratio, exceed_ratio=0.5, relative_width=WIDTH, initial_trial_duration=DURATION / 16,
                       final_trial_duration=DURATION, duration_sum=3 * DURATION, preceding_targets=2,
                       expansion_coefficient=2, fail_fast=True)
            for ratio in GOALS
        ]
        config.min_load, config.max_load = LEAST, MOST
        config.search_duration_max, config.warmup_duration = 1e9, None
        device = Device(capacity, steepness)
        found = MultipleLossRatioSearch(config).search(device, debug=lambda text: None)
        for goal, result in found.items():
            lower = float(result.relevant_lower_bound)
            upper = "" if result.relevant_upper_bound is None else float(result.relevant_upper_bound)
            conditional = float(result.conditional_throughput)
            print(f"{capacity:.0f},{steepness},{goal.loss_ratio},{lower},{upper},{conditional},{device.seconds}")


if __name__ == "__main__":
    main()
