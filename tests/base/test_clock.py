"""Another clock is found within half of the shortest round trip, however uneven the way there and back."""

from hypothesis import given
from hypothesis import strategies as st

from lt_core.base.clock import Probe, offset, uncertainty_s

ways = st.lists(st.tuples(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0)), min_size=1, max_size=9)


def probes(ahead_s, ways):
    now, found = 100.0, []
    for there, back in ways:
        found.append(Probe(now, now + there + ahead_s, now + there + back))
        now += there + back + 0.5
    return found


def test_an_even_way_is_exact():
    assert offset([Probe(10.0, 25.5, 11.0)]) == 15.0


def test_the_quickest_of_several_counts():
    assert offset([Probe(10.0, 99.0, 14.0), Probe(20.0, 25.5, 21.0)]) == 5.0


@given(st.floats(-1e3, 1e3), ways)
def test_the_error_is_within_what_is_said(ahead_s, ways):
    found = probes(ahead_s, ways)
    assert abs(offset(found) - ahead_s) <= uncertainty_s(found) + 1e-9
    assert abs(uncertainty_s(found) - min(there + back for there, back in ways) / 2) < 1e-9
