"""What a check says of numbers can be told apart and read: no exponent, commas, and the argument's own name."""

import pytest

from lt_core.teaching import check
from lt_core.teaching.checks.compress_wrong import forgets_the_old, never_read
from lt_core.teaching.checks.ring_answers import all_gather
from lt_core.teaching.checks.start_answers import who_was_late


def line(name, fn, property_name):
    """The line of one property, drawn from one seed."""
    return next(one.why for one in check(name, fn, seed=1, launch=None).lines if one.name == property_name)


@pytest.mark.parametrize("seed", range(12))
def test_waiting_of_p_ranks_and_of_p_less_one_are_two_numbers(seed):
    def all_wait(p, late_s, sum_s):
        return p * late_s, "the late rank"

    why = next(x.why for x in check("00.what_to_mend", all_wait, seed=seed).lines if x.name == "rank-seconds")
    said, lost = why.split(": you say ")[1].removesuffix(" are lost").split(" rank-seconds of waiting, ")
    assert said != lost and "e+" not in why
    assert float(said.replace(",", "")) > float(lost.replace(",", "")) and (float(lost.replace(",", "")) < 1000) == (
        "," not in lost
    )


def test_seconds_that_differ_by_little_are_two_numbers():
    def nearly(trace):
        rank, late_s = who_was_late(trace)
        return rank, late_s + 2e-5

    said, right = line("00.who_was_late", nearly, "by how much").split(": you say ")[1].split(" s, the one before ")
    assert said != right.removeprefix("it waited ").removesuffix(" s for it")


def test_a_result_that_is_off_in_its_last_digits_is_another_number():
    why = line("20.all_reduce", lambda comm, x: _sum(comm, x) + 1e-7, "values")
    held, right = why.split(" holds ")[1].split(" in place 0, ")
    assert held != right.removesuffix(" is right")


def _sum(comm, x):
    total = x.clone()
    comm.all_reduce(total)
    return total


def test_bytes_and_choices_have_commas():
    assert "one of 40,000, 400,000, 4,000,000 is wanted" in line("21.pick", lambda *_: 5, "one of the choices")
    why = line("21.pick", lambda *_: 4_000_000, "a wire that answers at once")
    assert "you say 4,000,000: " in why and "; 40,000: " in why
    assert "one of 'ring', 'recursive doubling', 'halving-doubling' is" in line(
        "20.choose", lambda *_: 5, "one of the three"
    )


def test_the_argument_is_not_called_x_where_it_is_called_y():
    def in_place(comm, y):
        y.copy_(all_gather(comm, y))
        return y

    assert line("20.all_gather", in_place, "input untouched") == (
        "12 elements on 2 ranks: what rank 0 was handed is another afterwards; work on a copy"
    )


@pytest.mark.parametrize(("answer", "added"), [(never_read, "[0, 0, 0, 0]; "), (forgets_the_old, "")])
def test_a_memory_that_keeps_the_wrong_thing_is_told_by_what_it_added(answer, added):
    why = next(x.why for x in check("32.feedback", answer, launch=None).lines if x.holds is False)
    assert f", the gradient plus {added or '['}" in why and why.endswith(" should have been kept for it")


def test_a_memory_that_sends_nothing_of_a_name_hears_what_is_due():
    def other_names(memory, grads, send):
        return send({f"my {name}": x for name, x in grads.items()})

    assert " sends nothing as w; [" in line("32.feedback", other_names, "what waits is added")


def test_all_reduces_are_of_messages():
    def one_by_one(model, comm, bucket_bytes):
        for p in model.parameters():
            comm.all_reduce(p.grad)
            p.grad /= comm.size

    assert line("21.average", one_by_one, "a message a bucket").endswith(
        "6 buckets are 6 all-reduces of 2 messages each"
    )
