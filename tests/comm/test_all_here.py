"""All ranks enter or none does, whoever gives up and when: nobody is left alone where nobody can free it."""

import threading

import pytest

from lt_core.base.errors import Aborted, Deadline
from lt_core.comm.all_here import LEFT, all_here
from lt_core.comm.meeting import InFolder


class Ranks:
    """Ranks 0 and 1 as threads; `entered`: who was inside; `raised`: what each one ended with."""

    def __init__(self, folder):
        self.meeting, self.entered, self.raised, self.threads = InFolder(folder), set(), {}, []

    def comes(self, rank, timeout_s=10.0, ended=lambda: ""):
        def run():
            try:
                with all_here(self.meeting, "pair", rank, 2, timeout_s, ended):
                    self.entered.add(rank)
            except BaseException as error:
                self.raised[rank] = error

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def over(self):
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive()
        return self.entered, {rank: (type(error), str(error)) for rank, error in self.raised.items()}


@pytest.fixture
def ranks(tmp_path):
    return Ranks(tmp_path)


def test_both_enter(ranks):
    ranks.comes(0)
    ranks.comes(1)
    assert ranks.over() == ({0, 1}, {})


def test_who_is_alone_too_long_names_who_did_not_come_and_the_late_one_does_not_enter(ranks):
    ranks.comes(0, timeout_s=0.2)
    assert ranks.over() == (set(), {0: (Deadline, "subset: of 2 ranks [1] have not come within 0.2 s")})
    ranks.comes(1)
    assert ranks.over()[1][1] == (Aborted, LEFT) and not ranks.entered


def test_who_is_told_that_the_group_has_ended_leaves_and_so_does_the_late_one(ranks):
    ranks.comes(0, ended=lambda: "rank 3 raised")
    assert ranks.over() == (set(), {0: (Aborted, "rank 3 raised")})
    ranks.comes(1, ended=lambda: "rank 3 raised")
    assert ranks.over() == (set(), dict.fromkeys((0, 1), (Aborted, "rank 3 raised")))


@pytest.mark.parametrize("error", [KeyboardInterrupt, Aborted])
def test_who_gives_up_when_the_other_has_entered_goes_with_it_first(ranks, error):
    """It was interrupted between coming and seeing: the other one would wait for it where no one can free it."""

    def interrupted():
        ranks.comes(1)  # sees both, and enters
        ranks.threads[-1].join(20)
        raise error("now")

    ranks.comes(0, ended=interrupted)
    ranks.threads[0].join(20)
    assert ranks.over() == ({0, 1}, {0: (error, "now")})
