"""Each law equals the simulation and the counts of real runs: bytes, messages exactly, seconds where chunks are even.

A new collective is a line in CASES; what has a law but no line, or never ran on real processes, fails below.
"""

from functools import partial
from hashlib import sha256
from inspect import signature
from types import SimpleNamespace

import pytest
import torch

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.base.units import bounds
from lt_core.collectives import basic, double_tree, doubling, halving, hierarchical, naive, ring, run, torus, tree
from lt_core.collectives.checks import units
from lt_core.comm import threads
from tests import witnesses
from tests.witnesses import Case, Sent


def summed(xs, rank):
    return torch.stack(xs).sum(0, dtype=torch.float64).to(xs[0].dtype)


def told(xs, rank):
    return xs[0]


def reduced(xs, rank):
    return summed(xs, rank) if rank == 0 else xs[rank]


def scattered(xs, rank):
    result, (low, high) = xs[rank].clone(), bounds(xs[0].numel(), rank, len(xs))
    result[low:high] = xs[0][low:high]
    return result


def gathered(xs, rank):
    cuts = [bounds(xs[0].numel(), r, len(xs)) for r in range(len(xs))]
    return torch.cat([x[low:high] for x, (low, high) in zip(xs, cuts)]) if rank == 0 else xs[rank]


CASES = [  # where there is a root, it is rank 0
    Case("naive", "lt_core.collectives.naive", naive, summed),
    Case("broadcast", "lt_core.collectives.basic", basic.BROADCAST, told),
    Case("reduce", "lt_core.collectives.basic", basic.REDUCE, reduced),
    Case("scatter", "lt_core.collectives.basic", basic.SCATTER, scattered),
    Case("gather", "lt_core.collectives.basic", basic.GATHER, gathered),
    Case("ring", "lt_core.collectives.ring", ring, summed),
    Case("tree", "lt_core.collectives.tree", tree, summed),
    Case("doubling", "lt_core.collectives.doubling", doubling, summed),
    Case("halving", "lt_core.collectives.halving", halving, summed),
    Case("double_tree", "lt_core.collectives.double_tree", double_tree, summed, early=2),
    Case("torus", "lt_core.collectives.torus", torus, summed),
    Case("hierarchical", "lt_core.collectives.hierarchical", hierarchical, summed),
]
each_case = pytest.mark.parametrize("case", CASES, ids=str)
each_size = pytest.mark.parametrize("size", range(1, 9))

ELEMENTS = [0, 1, 2, 3, 5, 7, 10, 29, 1023, 1024]
INPUTS = [(n, torch.float64) for n in ELEMENTS] + [(n, t) for n in (1, 7, 1023) for t in (torch.int64, torch.bfloat16)]
INPUTS += [(7, torch.float32)]  # whole numbers below 2^24, so exact
COSTS = {  # binary fractions, so that sums are exact
    "latency": (Wire("latency", 1000.0, float("inf")), 0.0),
    "bandwidth": (Wire("bandwidth", 0.0, 0.5), 0.0),
    "all": (Wire("all", 1000.0, 0.25), 3.0),
}
LOGARITHMIC = ("tree", "doubling", "halving")  # their sums are trees of ceil(log2 p) levels
LARGE = [(65537, torch.float64), (65537, torch.int64), (65537, torch.bfloat16)]
MORE = {
    3: [(n, t) for n in (2, 3, 5, 1024) for t in (torch.int64, torch.bfloat16)],
    **dict.fromkeys((1, 4, 5), LARGE[1:2]),
}


@each_case
def test_one_rank_has_nothing_to_do(case):
    laws = case.laws
    assert laws.schedule(1).lanes == ((),)
    assert laws.law_seconds(1, 10**6, *COSTS["all"]) == laws.law_rounds(1) == 0
    assert laws.law_bytes(1, 10, 8, 0) == laws.law_messages(1, 10, 0) == 0


@each_case
@pytest.mark.parametrize("size", [0, -3])
def test_no_ranks_are_refused(case, size):
    name = case.laws.schedule(1).name
    with pytest.raises(UserError, match=f"^{name} needs ranks; got {size} ranks; expected at least 1$"):
        case.laws.schedule(size)


@each_case
@pytest.mark.parametrize("size", [*range(1, 9), 16])
def test_rounds(case, size):
    schedule = case.laws.schedule(size).check()
    assert case.laws.law_rounds(size) == len({a.batch for a in schedule.actions()})


@each_case
@pytest.mark.parametrize("size", [*range(1, 9), 16])
@pytest.mark.parametrize(("wire", "add_s_per_byte"), COSTS.values(), ids=COSTS)
def test_seconds_of_the_simulation(case, size, wire, add_s_per_byte):
    nbytes = 8 * units(case.laws.schedule(size))  # even chunks
    simulated = witnesses.seconds_by_simulation(case.laws.schedule(size), nbytes, wire, add_s_per_byte)
    law_s = case.laws.law_seconds(size, nbytes, wire, add_s_per_byte)
    assert law_s * (1 - case.early / (case.laws.law_rounds(size) or 1)) <= simulated <= law_s


@each_case
@each_size
def test_bytes_and_messages_of_the_simulation(case, size):
    for elements in [*ELEMENTS, 65537]:
        simulated = witnesses.by_simulation(case.laws.schedule(size), elements, itemsize=2)
        assert witnesses.by_law(case.laws, size, elements, itemsize=2) == simulated, elements


def values(rank, elements, dtype):
    return (torch.arange(elements) + 1000 * rank).to(dtype)


def measured(comm, case, inputs):
    """Of each input: whether the result is right, its bits, and what this rank sent for it."""
    schedule, report = case.laws.schedule(comm.size), []
    for elements, dtype in inputs:
        xs = [values(rank, elements, dtype) for rank in range(comm.size)]
        x, before = xs[comm.rank].clone(), comm.traffic.copy()
        run(comm, x, schedule)
        sent = (comm.traffic - before).counted
        bits = sha256(x.view(torch.uint8).numpy().tobytes()).hexdigest()
        report.append((right(x, case, xs, comm.rank), bits, Sent(sent.bytes, sent.messages)))
    return report


def right(x, case, xs, rank):
    """Exactly so; in bfloat16 within eps (sums in a row) sum |x|, for there each sum is rounded."""
    expected = case.right(xs, rank)
    return near(x, case, xs, expected) if x.dtype == torch.bfloat16 else torch.equal(x, expected)


def near(x, case, xs, expected):
    in_a_row = (len(xs) - 1).bit_length() if case.name in LOGARITHMIC else len(xs) - 1
    bound = torch.finfo(x.dtype).eps * in_a_row * sum(y.double().abs() for y in xs)
    return bool(((x.double() - expected.double()).abs() <= bound).all())


def hold_to_its_law(group, case, size, inputs):
    reports = group.run(measured, case, inputs)
    for k, (elements, dtype) in enumerate(inputs):
        oks, bits, sent = zip(*(report[k] for report in reports))
        assert all(oks), (elements, dtype)
        assert case.right is not summed or len(set(bits)) == 1, (elements, dtype)
        assert list(sent) == witnesses.by_law(case.laws, size, elements, dtype.itemsize), (elements, dtype)
    witnesses.RAN.add((case.module, group.backend))


@each_case
@each_size
def test_results_bytes_and_messages_of_a_real_run(ranks, case, size):
    """A peer's ring left early where elements were no multiple of the ranks: ranks silently kept their own data."""
    hold_to_its_law(ranks(size), case, size, INPUTS + MORE.get(size, []))


@each_case
@pytest.mark.parametrize("size", [2, 3, 6])
def test_a_real_run_of_many_elements(ranks, case, size):
    """It did so too where a chunk was longer than a constant."""
    hold_to_its_law(ranks(size), case, size, LARGE)


def fractions(rank, elements):
    return torch.randn(elements, generator=torch.Generator().manual_seed(rank))


@pytest.mark.parametrize("case", [case for case in CASES if case.right is summed], ids=str)
@pytest.mark.parametrize("size", [5, 8])
def test_sums_of_fractions_are_within_their_rounding_in_float32(case, size):
    def fn(comm):
        xs = [fractions(rank, 1023) for rank in range(comm.size)]
        x = xs[comm.rank].clone()
        run(comm, x, case.laws.schedule(comm.size))
        return x, near(x, case, xs, torch.stack(xs).double().sum(0))

    results = threads.run(fn, size)
    assert all(within and torch.equal(x, results[0][0]) for x, within in results)


def at(module, **settings):
    """An algorithm at other settings than its own, for those of its faces that have them."""
    faces = {name: getattr(module, name) for name in ("schedule", "law_bytes", "law_messages")}
    known = {name: settings.keys() & signature(face).parameters for name, face in faces.items()}
    return SimpleNamespace(**{n: partial(f, **{key: settings[key] for key in known[n]}) for n, f in faces.items()})


@pytest.mark.parametrize("ranks", ["threads"], indirect=True)
@pytest.mark.parametrize(
    "laws",
    [
        at(hierarchical, group=4),
        at(hierarchical, group=8),
        at(torus, columns=2),
        at(torus, columns=8),
        at(double_tree, pieces=1),
        at(double_tree, pieces=3),
    ],
    ids=["groups of 4", "one group", "2 columns", "8 columns", "1 piece", "3 pieces"],
)
def test_real_runs_at_other_settings(ranks, laws):
    case = Case("other settings", laws.schedule.func.__module__, laws, summed)
    hold_to_its_law(ranks(8), case, 8, INPUTS)


def test_every_law_stands_in_the_cases():
    assert {case.module for case in CASES} == set(witnesses.modules_with_laws("collectives"))


def test_every_other_folder_with_laws_has_cases_of_its_own():
    """A file of its tests compares its cases with `modules_with_laws("folder")`, as the test above does."""
    for folder in {module.split(".")[1] for module in witnesses.modules_with_laws()} - {"collectives"}:
        texts = [path.read_text(encoding="utf-8") for path in (witnesses.ROOT / "tests" / folder).rglob("test_*.py")]
        assert any(f'modules_with_laws("{folder}")' in text for text in texts), folder


@pytest.mark.processes
def test_every_law_was_met_by_real_processes(request):
    """The last of this file: of all that was selected to run over processes, nothing was left out."""
    chosen = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    on_processes = {p["case"].module for p in chosen if "case" in p and p.get("ranks", "threads") != "threads"}
    assert on_processes <= {module for module, backend in witnesses.RAN if backend != "threads"}
