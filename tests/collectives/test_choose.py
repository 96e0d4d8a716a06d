"""The chosen algorithm is the fastest: by law on one node, by simulation over several, on both sides of a crossover."""

from itertools import pairwise

import pytest

from lt_core.base.cluster import KITCHEN, OFFICE, RACK, SHOEBOX, Cluster, Wire
from lt_core.base.errors import UserError
from lt_core.collectives import ALGORITHMS, choose, crossovers, double_tree, doubling, hierarchical, naive, ring, torus
from lt_core.collectives.choose import choices, simulated
from tests.test_laws import CASES, summed


def together(size, wire=OFFICE):
    return Cluster("together", SHOEBOX, size, wire)


PAIRS = Cluster("pairs", SHOEBOX, 2, RACK, nodes=4, outer=OFFICE)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8, 16])
@pytest.mark.parametrize("nbytes", [0, 1, 10**4, 10**6, 10**8])
def test_no_law_is_below_the_chosen_one(size, nbytes):
    chosen = choose(together(size), size, nbytes)
    for name, algorithm in ALGORITHMS.items():
        assert algorithm.law_seconds(size, nbytes, OFFICE) >= chosen.seconds * (1 - 1e-9), name
    assert (
        simulated(chosen.schedule().check(), together(size), nbytes).makespan_s() <= chosen.seconds * (1 + 1e-6) + 1e-7
    )


def test_every_all_reduce_of_the_laws_can_be_chosen():
    named = {case.module.rsplit(".")[-1] for case in CASES if case.right is summed}
    assert {module.__name__.rsplit(".")[-1] for module in ALGORITHMS.values()} == named


def test_small_tensors_and_large_ones_powers_of_two_and_others():
    """The rules of MPICH: doubling for small ones, halving-doubling for large ones of 2^k ranks, a ring for others."""
    found = [[choose(together(size), size, nbytes).name for nbytes in (10**3, 10**8)] for size in (8, 7, 16)]
    small = "recursive doubling"
    assert found == [[small, "halving-doubling"], [small, "ring"], [small, "halving-doubling"]]


def test_the_size_from_which_on_the_ring_beats_doubling():
    among = {"recursive doubling": doubling, "ring": ring}
    assert crossovers(together(8), 8, among=among) == [(0, "recursive doubling"), (110_001, "ring")]
    assert crossovers(together(8, KITCHEN), 8, among=among)[1] == (
        110_001,
        "ring",
    )  # latency times bandwidth is the same


@pytest.mark.parametrize("size", [3, 8, 11])
def test_both_sides_of_every_crossover(size):
    found = crossovers(together(size), size)
    assert len({name for _, name in found}) == len(found) > 1
    for (_, before), (nbytes, after) in pairwise(found):
        assert choose(together(size), size, nbytes - 1).name == before
        assert choose(together(size), size, nbytes).name == after


def test_of_two_that_are_equally_fast_the_simpler_one():
    """A torus of 2 x 2 is halving-doubling, in other words, whose law rounds differently."""
    assert [name for _, name in crossovers(together(4), 4)] == ["recursive doubling", "halving-doubling"]
    assert choose(together(1), 1, 10**6).name == "naive"


def test_over_several_nodes_far_exchanges_share_a_nic():
    """Of 8 ranks on one wire halving-doubling beats all others; in pairs all four far ones meet at the NICs."""
    flat, pairs = (
        {choice.name: choice.seconds for choice in choices(cluster, 8, 10**7)} for cluster in (together(8), PAIRS)
    )
    assert flat["halving-doubling"] < flat["ring"]
    assert pairs["halving-doubling"] > 1.5 * pairs["ring"]
    assert choose(PAIRS, 8, 10**7).name == "torus"


def test_over_several_nodes_groups_are_nodes():
    found = {choice.name: choice.schedule() for choice in choices(PAIRS, 8, 10**4)}
    assert found["hierarchical"] == hierarchical.schedule(8, group=2)
    assert found["torus"] == torus.schedule(8, columns=2)
    price = {choice.name: choice.seconds for choice in choices(PAIRS, 8, 10**4)}
    assert price["hierarchical"] == pytest.approx(hierarchical.law_seconds(8, 10**4, OFFICE, group=2, inside=RACK))


def test_ranks_that_nodes_do_not_divide_still_get_a_schedule():
    assert {choice.schedule().check().size for choice in choices(PAIRS, 5, 100)} == {5}


def test_a_double_tree_comes_in_its_best_pieces():
    (chosen,) = choices(together(16), 16, 10**7, among={"double tree": double_tree})
    pieces = double_tree.best_pieces(16, 10**7, OFFICE)
    assert chosen.seconds == double_tree.law_seconds(16, 10**7, OFFICE, pieces=pieces)
    assert chosen.schedule() == double_tree.schedule(16, pieces)


def test_inside_a_node_the_pieces_are_the_best_for_the_wire_inside():
    """They were those for the wire between nodes, and priced over the one inside."""
    node = Cluster("node", SHOEBOX, 8, RACK, nodes=2, outer=Wire("far", 0.1, 1e6))
    (inside,) = choices(node, 8, 10**7, among={"double tree": double_tree})
    (alone,) = choices(together(8, RACK), 8, 10**7, among={"double tree": double_tree})
    assert (inside.seconds, inside.schedule()) == (alone.seconds, alone.schedule())
    (across,) = choices(node, 16, 10**7, among={"double tree": double_tree})
    assert across.schedule() == double_tree.schedule(16, double_tree.best_pieces(16, 10**7, node.outer))


def test_adding_is_priced_where_it_is_given():
    slow = choose(together(8), 8, 10**6, add_s_per_byte=1e-6)
    assert slow.seconds == pytest.approx(choose(together(8), 8, 10**6).seconds + 7 / 8)


def test_the_reason_names_all_in_their_order():
    chosen = choose(together(8), 8, 10**8, among={"naive": naive, "ring": ring})
    assert chosen.why == "ring takes 1.4 s by law, of ring 1.4 s, naive 11.2 s"
    assert "simulated" in choose(PAIRS, 8, 100).why


@pytest.mark.parametrize("size", [0, 9])
def test_ranks_that_the_cluster_has_not_are_refused(size):
    with pytest.raises(UserError, match=f"together has 8 ranks; got {size} ranks; expected 1 to 8"):
        choose(together(8), size, 100)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1,), "a tensor has bytes; got -1; expected 0 or more"),
        ((float("nan"),), "a tensor has bytes; got nan; expected 0 or more"),
        ((1, -1.0), "to add takes so many seconds a byte; got -1.0; expected 0 or more"),
        ((1, 0.0, {}), "there is nothing to choose among; try: choose.ALGORITHMS, or some of them"),
    ],
)
def test_what_is_no_choice(arguments, words):
    """From the depth came `math domain error`, `StopIteration`, `min() arg is an empty sequence`."""
    for face in (choose, crossovers):
        if face is choose or len(arguments) > 1:
            with pytest.raises(UserError) as caught:
                face(together(8), 8, *arguments)
            assert str(caught.value) == words
