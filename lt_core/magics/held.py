"""The one group that a notebook holds: who asks for the same ranks again gets these, with their variables."""

from __future__ import annotations

from collections.abc import Callable

from lt_core.base.errors import UserError
from lt_core.comm.group import Group, Line
from lt_core.magics.live import Screen
from lt_core.magics.options import Options


class Held:
    """The group of this notebook, once a cell has asked for one. `owner`: what other notebooks are told."""

    def __init__(self, owner: Callable[[], str], make: Callable[..., Group] = Group) -> None:
        self._owner, self._make = owner, make
        self.group: Group | None = None
        self._options = Options()

    def take(self, options: Options, screen: Screen) -> Group:
        """The ranks that a cell asks for. They come up when it runs; other ones than before replace them."""
        old, fits = self.group, self._fits(options)
        if old is None or not fits:
            group = self._new(options)  # which may be refused: then the old ones stay
            if old is not None:
                if old.alive:
                    screen.show(Line((), "err", f"{group.size} new ranks, without the variables: {self._why(options)}"))
                old.stop()  # also of dead ranks there are a thread, sockets and pipes
            self.group, self._options = group, options
        assert self.group
        if not self.group.alive:
            screen.progress(starting(self.group))
        return self.group

    def fresh(self, options: Options, screen: Screen) -> Group:
        """Ranks for one cell alone; who takes them stops them."""
        group = self._new(options)
        screen.progress(starting(group))
        return group

    def size(self, options: Options) -> int:
        """How many ranks a cell asks for. Errors: `UserError` where neither it nor a cell before has said so."""
        size = options.size or (self.group.size if self.group else 0)
        if not size:
            raise UserError("no ranks stand yet", expected="their number in the first cell", attempt="%%torchrun -n 4")
        return size

    def standing(self) -> Group:
        """The group that is there. Errors: `UserError` where none is."""
        if self.group is None:
            raise UserError("this notebook holds no ranks", attempt="%%torchrun -n 4")
        return self.group

    def plain(self) -> Group | None:
        """The group, if there is one and its wires are as they are."""
        return None if self._options.shape else self.group

    def stop(self) -> bool:
        """End the ranks; whether there were some."""
        group, self.group = self.group, None
        lived = group is not None and group.alive
        if group is not None:
            group.stop()
        return lived

    def _fits(self, options: Options) -> bool:
        group = self.group
        if group is None:
            return False
        sizes, backends = (0, group.size), ("auto", group.backend, self._options.backend)
        return options.size in sizes and options.backend in backends and options.shape == self._options.shape

    def _why(self, options: Options) -> str:
        assert self.group
        if options.size not in (0, self.group.size):
            return f"there were {self.group.size}"
        other = options.shape != self._options.shape
        return f"their wires were {self._options.shape or 'as they are'}" if other else f"over {self.group.backend}"

    def _new(self, options: Options) -> Group:
        return self._make(self.size(options), options.backend, owner=self._owner(), shape=options.shape)


def starting(group: Group) -> str:
    """What is said while ranks come up."""
    return f"starting {group.size} rank{'s' * (group.size > 1)} over {group.backend}"
