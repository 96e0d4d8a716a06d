"""Buckets are cut from the last parameter on: as many as fit, and what fits none takes along the small before it."""

import pytest

from lt_core.data_parallel.replicate.buckets import bucket_elements

CUTS = {  # (elements as registered, elements that a bucket holds, elements of each bucket)
    "all in one": ([1, 2, 3], 6, [6]),
    "as many as fit": ([4, 2, 3], 6, [5, 4]),
    "one that fits none stays alone": ([9], 6, [9]),
    "two that fit none": ([9, 8], 6, [8, 9]),
    "its bias goes with it": ([9, 1, 8, 2], 6, [10, 10]),
    "what fills more than half of a bucket does not wait for it": ([9, 2, 2], 6, [4, 9]),
    "what fills half of one does neither": ([9, 3], 6, [3, 9]),
    "nothing comes behind it": ([1, 9, 1], 6, [10, 1]),
}


@pytest.mark.parametrize(("elements", "most", "cut"), CUTS.values(), ids=CUTS)
def test_cuts(elements, most, cut):
    assert bucket_elements(elements, 4, 4 * most) == cut
