"""One rank without a wire: for what a reducer does with a single gradient."""

from lt_core.base.errors import RankError
from lt_core.comm import threads


def steps(make, gradients):
    """[(mean, sent), ..] of the gradients, one after the other, on one rank. Raises what the reducer raised."""

    def run(comm):
        reducer = make()
        return [reducer.reduce(grads, comm) for grads in gradients]

    try:
        return threads.run(run, 1, (), 30)[0]
    except RankError as error:
        raise error.__cause__ from None


def once(reducer, **grads):
    """The mean of one gradient on one rank."""
    return steps(lambda: reducer, [grads])[0].mean
