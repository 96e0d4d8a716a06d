"""Lines of JSON from a class become one picture, and what wins a ring follows from each machine's own numbers."""

import json

import pytest

from lt_core.base.cluster import SHOEBOX, Cluster, Wire
from lt_core.base.errors import UserError
from lt_core.teaching import class_chart, machine_line


def line(name, latency_s, bytes_per_s, flops_per_s=1e10):
    said = {"latency_s": latency_s, "bytes_per_s": bytes_per_s, "flops_per_s": flops_per_s}
    return json.dumps({"machine": name, **said})


QUICK, WIDE = line("ana", 2e-5, 1e8), line("ben", 3e-4, 2e9)


def test_a_machine_s_line_says_what_was_measured():
    said = json.loads(machine_line(Cluster("here", SHOEBOX, 4, Wire("here", 1.2345e-4, 2e9)), "ana"))
    assert said.pop("flops_per_s") > 0
    assert said == {"machine": "ana", "latency_s": 1.23e-4, "bytes_per_s": 2e9}


def test_who_wins_follows_from_latency_for_small_tensors_and_bandwidth_for_large_ones():
    assert class_chart([QUICK, WIDE]).times == "ana wins a ring of 4 at 1 kB. ben wins a ring of 4 at 100 MB."
    other = [line("ana", 3e-4, 2e9), line("ben", 2e-5, 1e8)]
    assert class_chart(other).times == "ben wins a ring of 4 at 1 kB. ana wins a ring of 4 at 100 MB."


def test_each_machine_has_its_mark_and_its_row_beside_three_known_wires():
    figure = class_chart([QUICK, "", WIDE, line("ana", 5e-5, 1e8)])  # ana measured again
    theirs, known = figure.figure.data
    assert (list(theirs.text), list(theirs.x), list(theirs.y)) == (["ana", "ben"], [5e-5, 3e-4], [1e8, 2e9])
    assert list(known.text) == ["rack", "office", "kitchen"]
    assert theirs.marker.symbol != known.marker.symbol
    assert figure.rows[0] == ("machine", "link", "one core", "ring of 4, 1 kB", "ring of 4, 100 MB")
    assert figure.rows[1] == ("ana", "800 Mbit/s, 50 us", "10 Gflop/s", "315 us", "1.5 s")


def test_a_name_of_several_words_is_no_part_of_its_link():
    figure = class_chart([line("my (old) machine", 5e-5, 1e8)])
    assert figure.rows[1][:2] == ("my (old) machine", "800 Mbit/s, 50 us")


def test_its_words_are_the_same_whatever_was_measured():
    assert class_chart([QUICK]).words == class_chart([WIDE]).words


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "a chart of no machine; expected a line a machine, as machine_line prints it"),
        ([QUICK, "ana: fast"], "line 2 is no machine; got ana: fast; expected what machine_line prints"),
        ([json.dumps({"machine": "ana"})], 'line 1 is no machine; got {"machine": "ana"}; expected what machine_'),
        ([line("ana", 0, 1e8)], "line 1 has no place on logarithmic axes; got [0.0, 100000000.0, 10000000000.0]"),
    ],
)
def test_what_it_refuses(lines, words):
    with pytest.raises(UserError) as caught:
        class_chart(lines)
    assert str(caught.value).startswith(words)
