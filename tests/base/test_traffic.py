"""Traffic adds up by peer, and keeps what was counted apart from what is known by law."""

import pickle

from lt_core.base.traffic import Traffic


def sent():
    traffic = Traffic()
    traffic.counted.add(1, 80)
    traffic.counted.add(1, 20)
    traffic.counted.add(3, 7, messages=2)
    traffic.by_law.add(2, 1000, messages=6)
    return traffic


def test_sums():
    traffic = sent()
    assert (traffic.counted.bytes, traffic.counted.messages, dict(traffic.counted.bytes_to)) == (107, 4, {1: 100, 3: 7})
    assert (traffic.by_law.bytes, traffic.by_law.messages) == (1000, 6)
    assert (traffic.bytes, traffic.messages) == (1107, 10)


def test_what_was_sent_since():
    traffic = sent()
    before = traffic.copy()
    traffic.counted.add(3, 5)
    since = traffic - before
    assert (since.bytes, since.messages, dict(since.counted.bytes_to)) == (5, 1, {1: 0, 3: 5})
    assert before == sent()


def test_a_copy_is_no_alias():
    traffic = sent()
    other = traffic.copy()
    other.counted.add(1, 1)
    assert traffic == sent() and other != traffic


def test_two_ranks_together():
    assert (sent() + sent()).bytes == 2214


def test_clear_and_crossing():
    traffic = pickle.loads(pickle.dumps(sent()))
    assert traffic == sent()
    traffic.clear()
    assert traffic == Traffic() and traffic.bytes == 0
