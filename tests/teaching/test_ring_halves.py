"""What the halves of lab 20's ring are held to: together they are the ring's own laws."""

import pytest

from lt_core.collectives import ring
from lt_core.teaching.checks.exercise import Case
from lt_core.teaching.checks.ring_halves import half
from lt_core.teaching.checks.tensors import integers


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("elements", [0, 1, 3, 10, 1023])
def test_the_laws_of_the_two_halves_add_up_to_the_ring_s(size, elements):
    case, first, second = Case(size, elements, integers), half(1), half(2)
    for rank in range(size):
        assert first.nbytes(case, rank) + second.nbytes(case, rank) == ring.law_bytes(size, elements, 8, rank)
        assert first.least(case, rank) + second.least(case, rank) == ring.law_messages(size, elements, rank)
    assert first.most(case) + second.most(case) == ring.law_rounds(size)


def test_fifteen_elements_of_ten_and_four_or_five_of_three():
    for elements, sent in ((10, [15, 15, 15, 15]), (3, [4, 4, 5, 5])):
        case = Case(4, elements, integers)
        assert [(half(1).nbytes(case, r) + half(2).nbytes(case, r)) // 8 for r in range(4)] == sent
