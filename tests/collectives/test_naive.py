"""The naive all-reduce, as a drawing, and why nobody uses it: rank 0 is the queue."""

from lt_core.collectives import naive, ring
from lt_core.engine.costs import Unit
from lt_core.engine.simulate import simulate


def test_all_to_rank_0_one_after_the_other_and_back():
    assert (
        naive.schedule(3).check().grid()
        == """\
0: 0ADD0<1*3  0ADD1<2*3  0SEND2>1*3 0SEND3>2*3
1: 0SEND0>0*3 .          0COPY2<0*3 .
2: .          0SEND1>0*3 .          0COPY3<0*3"""
    )


def test_rank_0_sends_what_all_others_send_together():
    assert [naive.law_bytes(4, 10, 8, rank) for rank in range(4)] == [240, 80, 80, 80]
    assert [naive.law_messages(4, 10, rank) for rank in range(4)] == [3, 1, 1, 1]
    assert [naive.law_messages(4, 0, rank) for rank in range(4)] == [0, 0, 0, 0]


def test_eight_ranks_and_eight_chunks_take_112_chunk_times_and_the_ring_14():
    per_chunk = Unit(beta=1.0)
    assert simulate(naive.schedule(8), per_chunk).makespan_s() == 112
    assert simulate(ring.schedule(8), per_chunk).makespan_s() == 14
