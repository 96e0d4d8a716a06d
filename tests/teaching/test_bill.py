"""The bill takes its four currencies from the records of a run, says what was not measured, and keeps what was."""

import pytest
import torch

from lt_core.base import Action, Ledger, Op, Span, Trace, Traffic, UserError
from lt_core.teaching import bill, verify
from lt_core.teaching.bill import items


def traffic(*sent, by_law=False):
    one = Traffic()
    for nbytes in sent:
        (one.by_law if by_law else one.counted).add(1, nbytes)
    return one


def ledger(*nbytes):
    one = Ledger()
    for n in nbytes:
        one.hold("activations", n)
        one.free("activations", n)
    return one


def trace(*ops):
    spans = [Span(0, op.stream, str(op), k, k + 1.0, action=Action(op, k)) for k, op in enumerate(ops)]
    return Trace("run", [*spans, Span(1, "compute", "F", 0, len(ops) / 2)])


def test_an_empty_bill(learner, capsys):
    bill(learner=learner)
    assert capsys.readouterr().out == "Your bill is empty: each lab adds a line.\n"


def test_what_was_not_measured_is_said(learner, capsys):
    bill("ring all-reduce", lab="20", traffic=[traffic(6144, 6144)] * 4, learner=learner)
    assert capsys.readouterr().out == (
        "Your bill, technique by technique:\nring all-reduce (lab 20)\n"
        "  memory: not measured yet\n  compute: not measured yet\n"
        "  wire: 12,288 bytes in 2 messages a rank and step\n  sameness: not measured yet\n"
    )


def test_each_currency_from_its_record(learner, capsys):
    x = torch.ones(3)
    bill(
        "remat", lab="12", ledger=[ledger(5, 70), ledger(60)], trace=trace(Op.C, Op.C, Op.F, Op.B, Op.B),
        traffic=[traffic(10, 10, 10, 10), traffic(10, by_law=True)], badge=verify(x, x), steps=2, note="worth it",
        learner=learner,
    )  # fmt: skip
    (item,) = items(learner)
    assert item.memory_bytes == 70
    assert item.flops_times == pytest.approx(7 / 6)  # three forwards and two backwards, of which two forwards are plain
    assert item.idle == pytest.approx(0.25)
    assert (item.sent_bytes, item.messages) == ([5.0, 20.0], [0.5, 2.0])
    shown = capsys.readouterr().out
    assert "remat (lab 12): worth it\n  memory: 70 B\n  compute: 1.17 times a plain step's, idle 25 %\n" in shown
    assert "  wire: 5 to 20 bytes in 0.5 to 2 messages a rank and step, by law\n  sameness: ≡ SAME BITS\n" in shown


def test_one_byte_in_one_message(learner, capsys):
    bill("a flag", traffic=[traffic(1)] * 2, learner=learner)
    assert "  wire: 1 byte in 1 message a rank and step\n" in capsys.readouterr().out


def test_lines_of_different_sizes_compare_in_n(learner, capsys):
    bill("through rank 0", traffic=[traffic(10, 20), traffic(10)], n_bytes=10, learner=learner)
    bill("ring", traffic=[traffic(6144, 6144)] * 2, n_bytes=8192, learner=learner)
    shown = capsys.readouterr().out
    assert "  wire: 1 to 3 n in 1 to 2 messages a rank and step (10 to 30 bytes; n = 10)\n" in shown
    assert "  wire: 1.5 n in 2 messages a rank and step (12,288 bytes; n = 8,192)\n" in shown
    assert shown.endswith("n: the bytes of what is summed or sent, once; lines compare in n.\n")


def test_n_is_of_a_step_and_may_be_a_part(learner):
    bill("top-k", traffic=traffic(30, 30, by_law=True), n_bytes=100, steps=2, learner=learner)
    assert items(learner)[0].wire == "0.3 n in 1 message a rank and step, by law (30 bytes; n = 100)"


def test_a_badge_says_of_what_it_is(learner, capsys):
    bill("top-k", badge=verify(torch.ones(3), torch.ones(3)), of="sent + kept", learner=learner)
    assert "  sameness: ≡ SAME BITS, of sent + kept\n" in capsys.readouterr().out


@pytest.mark.parametrize("n_bytes", [0, -8])
def test_an_n_of_nothing_compares_nothing(learner, n_bytes):
    with pytest.raises(UserError, match=f"a bill in parts of n needs an n; got {n_bytes}; expected bytes above 0"):
        bill("ring", traffic=traffic(8), n_bytes=n_bytes, learner=learner)


def test_a_trace_without_computing_says_nothing_of_compute(learner):
    bill("ring", trace=Trace("run", [Span(0, "out", "3SEND0>1", 0.0, 1.0)]), learner=learner)
    assert items(learner)[0].compute == "not measured yet"


def test_billed_again_keeps_what_is_not_measured_anew(learner):
    bill("ring", lab="20", traffic=traffic(8), learner=learner)
    bill("naive", lab="20", traffic=traffic(80), learner=learner)
    bill("ring", ledger=ledger(4), learner=learner)
    assert [(i.technique, i.lab, i.memory, i.wire[:8]) for i in items(learner)] == [
        ("ring", "20", "4 B", "8 bytes "), ("naive", "20", "not measured yet", "80 bytes"),
    ]  # fmt: skip


def test_a_notebook_gets_a_table_of_five_columns(learner, displayed):
    bill("ring <1>", lab="20", traffic=traffic(8), learner=learner)
    html = displayed[0]["data"]["text/html"]
    assert html.count('scope="col"') == 5 and html.count("<td") == 4 and "ring &lt;1&gt; (lab 20)" in html
    assert displayed[0]["data"]["text/plain"].startswith("Your bill") and "<p>" not in html
    bill("ring <1>", n_bytes=8, learner=learner)
    assert "1 n in 1 message" in displayed[1]["data"]["text/html"]
    assert displayed[1]["data"]["text/html"].endswith(
        "</table><p>n: the bytes of what is summed or sent, once; lines compare in n.</p>"
    )


def test_no_steps_no_bill(learner):
    with pytest.raises(UserError, match="a bill needs steps; got 0; expected at least 1"):
        bill("ring", traffic=traffic(8), steps=0, learner=learner)
