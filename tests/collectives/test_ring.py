"""The ring, as a drawing and in the numbers that its papers give."""

import pytest

from lt_core.base.cluster import OFFICE, Wire
from lt_core.collectives import ring


def test_two_ranks_swap_halves():
    assert ring.schedule(2).check().grid() == (
        "0: 0SEND0>1+1ADD0<1 1SEND1>1+0COPY1<1\n"  #
        "1: 1SEND0>0+0ADD0<0 0SEND1>0+1COPY1<0"
    )


def test_four_ranks_pass_four_chunks_round_twice():
    assert (
        ring.schedule(4).check().grid()
        == """\
0: 0SEND0>1+3ADD0<3 3SEND1>1+2ADD1<3 2SEND2>1+1ADD2<3 1SEND3>1+0COPY3<3 0SEND4>1+3COPY4<3 3SEND5>1+2COPY5<3
1: 1SEND0>2+0ADD0<0 0SEND1>2+3ADD1<0 3SEND2>2+2ADD2<0 2SEND3>2+1COPY3<0 1SEND4>2+0COPY4<0 0SEND5>2+3COPY5<0
2: 2SEND0>3+1ADD0<1 1SEND1>3+0ADD1<1 0SEND2>3+3ADD2<1 3SEND3>3+2COPY3<1 2SEND4>3+1COPY4<1 1SEND5>3+0COPY5<1
3: 3SEND0>0+2ADD0<2 2SEND1>0+1ADD1<2 1SEND2>0+0ADD2<2 0SEND3>0+3COPY3<2 3SEND4>0+2COPY4<2 2SEND5>0+1COPY5<2"""
    )


@pytest.mark.parametrize("size", range(2, 9))
def test_after_half_the_rounds_rank_r_owns_chunk_r_plus_1(size):
    last_add = {a.rank: a.unit for a in ring.schedule(size).actions() if str(a).startswith(f"{a.unit}ADD{size - 2}")}
    assert last_add == {r: (r + 1) % size for r in range(size)}


@pytest.mark.parametrize("size", range(2, 9))
def test_everyone_talks_to_the_right_and_listens_to_the_left(size):
    ends = {(a.rank, a.peer, a.op.stream) for a in ring.schedule(size).actions()}
    right = {(r, (r + 1) % size, "out") for r in range(size)}
    assert ends == right | {(r, (r - 1) % size, "in") for r in range(size)}


@pytest.mark.parametrize(
    ("size", "elements", "sent"),
    [(4, 10, [15, 15, 15, 15]), (4, 3, [4, 4, 5, 5]), (2, 1, [1, 1]), (3, 1, [1, 1, 2]), (8, 8, [14] * 8)],
)
def test_elements_sent_over_uneven_chunks(size, elements, sent):
    assert [ring.law_bytes(size, elements, 1, rank) for rank in range(size)] == sent


def test_chunks_without_elements_are_no_messages():
    assert [ring.law_messages(4, 4, rank) for rank in range(4)] == [6, 6, 6, 6]
    assert [ring.law_messages(4, 3, rank) for rank in range(4)] == [4, 4, 5, 5]
    assert [ring.law_messages(4, 0, rank) for rank in range(4)] == [0, 0, 0, 0]


@pytest.mark.parametrize(("size", "rounds", "multiple"), [(4, 6, 1.5), (8, 14, 1.75), (1024, 2046, 2 * 1023 / 1024)])
def test_rounds_and_bytes_of_the_papers(size, rounds, multiple):
    assert ring.law_rounds(size) == rounds
    assert ring.law_bytes(size, 1024, 4, 0) == multiple * 4096


def test_seconds_on_a_named_wire():
    gradient = 420_480 * 4
    assert ring.law_seconds(4, gradient, OFFICE) == pytest.approx(20.2e-3 + 0.6e-3, abs=0.05e-3)
    assert ring.law_seconds(4, gradient, Wire("no latency", 0.0, 1.0)) == 1.5 * gradient
    assert ring.law_seconds(4, 400, Wire("free", 0.0, float("inf")), add_s_per_byte=2.0) == 3 * 100 * 2.0
