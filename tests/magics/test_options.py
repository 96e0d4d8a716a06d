"""A line of `%%torchrun` says what the documentation says, and a wrong one is told what is wrong with it."""

import pytest

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.magics.options import ARGUMENTS, Options, read
from lt_core.magics.torchrun import Torchrun


def said(line, standing=4, **names):
    return read(Torchrun.torchrun, line, names, standing)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("", {}),
        ("-n 4", {"size": 4}),
        ("-n4", {"size": 4}),
        ("--ranks 0,2-3", {"ranks": (0, 2, 3)}),
        ("--ranks 3,1,1-2", {"ranks": (1, 2, 3)}),
        ("--backend gloo", {"backend": "gloo"}),
        ("--backend shared_memory", {"backend": "shared_memory"}),
        ("--timeout 2.5", {"timeout_s": 2.5}),
        ("--in x,f", {"given": ("x", "f")}),
        ('--in "x, f"', {"given": ("x", "f")}),
        ("--out y", {"wanted": ("y",)}),
        ("--fresh", {"fresh": True}),
        ("--expect ValueError", {"expect": "ValueError"}),
        ("--save 'my ring.py'", {"save": "my ring.py"}),
        ('--shape "1 Gbit/s 0.1 ms"', {"shape": Wire("shaped", 1e-4, 1e9 / 8)}),
        ("status", {"command": "status"}),
        ("stop --all", {"command": "stop", "everywhere": True}),
    ],
)
def test_each_option(line, meant):
    assert said(line) == Options()._replace(**meant)


def test_a_value_stays_one_word_whatever_it_holds():
    options = said("-n {k} --shape $wire --save {file}", k=2, wire="1 Gbit/s 0.1 ms", file="it's --fresh.py")
    assert (options.size, options.save, options.fresh) == (2, "it's --fresh.py", False)
    assert options.shape == Wire("shaped", 1e-4, 1e9 / 8)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-n four", "-n is no number of ranks; got 'four'; expected at least 1; try: -n 4"),
        ("-n 0", "-n is no number of ranks; got '0'"),
        ("--ranks 3-1", "--ranks is no list of ranks; got '3-1'; expected numbers and spans; try: --ranks 0,2-3"),
        ("--ranks 0,,1", "--ranks is no list of ranks; got '0,,1'"),
        (
            "--ranks 0-999999999",
            "--ranks names a rank that is not there; got 999999999; expected some of 0-3; try: --ranks 0-3",
        ),
        ("-n 2 --ranks 2,0", "--ranks names a rank that is not there; got 2; expected some of 0-1; try: --ranks 0-1"),
        ("-n 1 --ranks 1", "--ranks names a rank that is not there; got 1; expected some of 0; try: --ranks 0"),
        (f"--ranks 0-{'9' * 5000}", "--ranks is no list of ranks; got '0-9999"),
        (f"-n {'9' * 5000}", "-n is no number of ranks; got '9999"),
        ("--timeout soon", "--timeout is no time; got 'soon'; expected seconds, above 0"),
        ("--timeout 0", "--timeout is no time; got '0'"),
        ("--timeout 1e29", "--timeout is no time; got '1e29'; expected seconds, above 0, 31536000 at most; try: --tim"),
        (f"--timeout {10**29}", f"--timeout is no time; got '{10**29}'; expected seconds, above 0, 31536000 at most"),
        (
            "--backend nope",
            "--backend is none of those that processes have; got 'nope'; expected auto, gloo, shared_memory, nccl",
        ),
        ("--in x,2y", "--in takes names of variables; got '2y'; try: --in x,y"),
        ("--in rank", "--in rank: a cell has its own rank; try: another name"),
        ("--in class", "--in takes names of variables; got 'class'; try: --in x,y"),
        ("--out a.b", "--out takes names of variables; got 'a.b'"),
        ("--shape fast", "'fast' is no wire; expected bandwidth and latency; try: 1 Gbit/s 0.1 ms"),
        ("stpo", "%torchrun does not know that; got 'stpo'; expected status, restart, stop"),
        ("status --all", "--all belongs to stop; try: %torchrun stop --all"),
        ("--s x", "%torchrun --s x: ambiguous option: --s could match --save, --shape"),
        ("--nodes 2", "%torchrun --nodes 2: unrecognized arguments: --nodes; try: %torchrun?"),
        ("-n", "%torchrun -n: argument -n: expected one argument; try: %torchrun?"),
        ("--save 'x", "%torchrun --save 'x: No closing quotation; try: quotes in pairs"),
    ],
)
def test_a_wrong_line(line, words):
    with pytest.raises(UserError) as caught:
        said(line)
    assert str(caught.value).startswith(words)


def test_without_ranks_none_are_named():
    assert said("--ranks 0-999999999", standing=0).ranks is None


def test_help_explains_every_argument(notebook, capsys):
    notebook.run("%torchrun?")
    shown = capsys.readouterr().out
    for flags, described in ARGUMENTS:
        assert flags[-1] in shown and described["help"].split()[0] in shown
    assert "A cell finds comm, rank, torch and lt" in shown
    notebook.run("%%torchrun?")
    assert capsys.readouterr().out == shown
