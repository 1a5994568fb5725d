import pytest

import fastpath as fp

POINTS = {
    "p": [64, 64, 512, 512, 1518, 1518],
    "h": [0, 10, 0, 10, 0, 10],
    "T_ns": [45.2, 85.6, 90.1, 131.2, 191.8, 232.7],
}


class Frame:
    """What pandas and polars have in common."""

    columns = list(POINTS)

    def __getitem__(self, name):
        return POINTS[name]


@pytest.mark.parametrize("data", [POINTS, Frame()])
def test_a_fit_has_intervals(data):
    fitted = fp.fit(data, "T_ns", "const,p,h")
    per_lookup = fitted.coefficients["h"]
    assert per_lookup["low"] < 4.07 < per_lookup["high"]
    assert "h 4.0" in repr(fitted)


def test_a_table_that_does_not_fit_is_refused():
    with pytest.raises(fp.Error, match="q"):
        fp.fit(POINTS, "T_ns", "const,q")
    with pytest.raises(fp.Error, match="different lengths"):
        fp.fit({**POINTS, "h": [1]}, "T_ns", "const,h")


def test_a_simulation_is_repeatable():
    workload = "line-rate,size=64,ports=4,duration=1ms"
    first, second = (fp.simulate("ixp1200", "linkem", workload) for _ in range(2))
    assert first.forwarded_pps == second.forwarded_pps > 0
    with pytest.raises(fp.Error):
        fp.simulate("ixp9999", "linkem", workload)
