"""What a user reads when something is wrong: what, what came, what was expected, what to try."""

from __future__ import annotations


class Shown:
    """Mixed into the errors of users: a notebook shows their text alone, without the frames of this package."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class UserError(Shown, ValueError):
    """An input that cannot work: `UserError("3 stages cannot take 2 layers", attempt="use at most 2 stages")`.

    Reads "<what>; got <got>; expected <expected>; try: <attempt>", each part only where it is given.
    """

    def __init__(self, what: str, got: object = "", expected: object = "", attempt: str = "") -> None:
        super().__init__(what, got, expected, attempt)
        self.what, self.got, self.expected, self.attempt = what, got, expected, attempt

    def __str__(self) -> str:
        parts = [self.what]
        parts += [f"got {self.got}"] if self.got != "" else []
        parts += [f"expected {self.expected}"] if self.expected != "" else []
        parts += [f"try: {self.attempt}"] if self.attempt else []
        return "; ".join(parts)


class ScheduleError(UserError):
    """A schedule that no machine could run: twins, a missing need, a lone end of a transfer, a circle.

    `drawing` is the schedule as text, the place marked; it stands below the words.
    """

    def __init__(
        self, what: str, got: object = "", expected: object = "", attempt: str = "", drawing: str = ""
    ) -> None:
        super().__init__(what, got, expected, attempt)
        self.args, self.drawing = (what, got, expected, attempt, drawing), drawing

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.drawing}".rstrip()


class Mismatch(UserError):
    """Ranks that entered different collectives, or the same one with different tensors."""


class Misuse(UserError):
    """A call that gloo forgives and NCCL does not: a strided tensor, a result read before `wait()`, crossed sends."""


class Deadline(Shown, TimeoutError):
    """A wait that lasted longer than it was allowed to; the text says who waited for whom."""


class Aborted(Shown, RuntimeError):
    """The communicator was ended by `abort(reason)`; every verb begun or waiting raises this."""


class RankError(Shown, RuntimeError):
    """A launch ended by a rank. `rank` failed first, with `kind` and `message`; `str()` holds its own traceback.

    Where the rank's exception could be pickled it is this error's `__cause__`. `shared`: no rank was the first, as in
    a circle of waits; `rank` is one of them.
    """

    def __init__(self, rank: int, kind: str, message: str, details: str = "", shared: bool = False) -> None:
        super().__init__(rank, kind, message, details, shared)
        self.rank, self.kind, self.message, self.details, self.shared = rank, kind, message, details, shared

    def __str__(self) -> str:
        who = "" if self.shared else f"rank {self.rank} failed first: "
        return f"{who}{self.kind}: {self.message}\n{self.details}".rstrip()
