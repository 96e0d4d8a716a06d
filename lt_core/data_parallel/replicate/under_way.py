"""The buckets of one step on their way: they leave in one order, and wait at the end until `.grad` can show them all.

buckets   [ 0 ][ 1 ][ 2 ][ 3 ]          a bucket leaves when it is full and all before it have left
here      [ 0 ]                         landed: it stays here until it is shown or dropped
waits          [ 1 ][ 2 ]               on the wire; `land` sends off the rest and waits for all
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lt_core.data_parallel.replicate.carriers import Carrier, Landed
from lt_core.data_parallel.replicate.flat import Bucket


class UnderWay:
    """Buckets, and how far each of them has come."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self.buckets: Sequence[Bucket] = []
        self._waits: list[Callable[[], Landed]] = []
        self._here: list[Landed] = []

    @property
    def ready(self) -> bool:
        """Whether the next one to leave is full."""
        return self._begun < len(self.buckets) and self.buckets[self._begun].full

    @property
    def _begun(self) -> int:
        return len(self._here) + len(self._waits)

    def begin(self) -> None:
        """Send the next one off."""
        bucket = self.buckets[self._begun]
        bucket.leave()
        self._waits.append(self._carrier.begin(bucket))

    def land(self) -> None:
        """Send all off, and wait for all. Errors: the first of a carrier; behind it the others are here, or have failed
        too, so that no memory is in use any more."""
        try:
            while self._begun < len(self.buckets):
                self.begin()
        finally:
            self._wait()

    def _wait(self) -> None:
        failed: list[Exception] = []
        while self._waits:
            try:
                self._here.append(self._waits[0]())
            except Exception as error:
                failed.append(error)
            del self._waits[0]
        if failed:
            raise failed[0]

    def landed(self) -> Iterator[tuple[Bucket, Landed]]:
        """Each bucket with its means, once `land` has returned."""
        return zip(self.buckets, self._here)

    def reduced(self) -> set[str]:
        """The parameters for which a carrier has made a mean that nobody was shown yet."""
        return {name for landed in self._here for name in landed.means}

    def clear(self) -> None:
        """Buckets can be filled again."""
        self._here = []
        for bucket in self.buckets:
            bucket.empty()

    def free(self) -> None:
        """Give the memory back, but for what is still summed, after a backward without a sync."""
        for bucket in self.buckets:
            if not (bucket.left and self._waits):
                bucket.free()
