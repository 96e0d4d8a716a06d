"""Rows are ratios of interleaved rounds with their quartiles, and their tables stand between markers, once each."""

import ast
import importlib
import importlib.util
import json
import sys
from collections import defaultdict
from itertools import count, product
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from benchmarks.rows import Row, against_law, compare, compare_rounds, printed, seconds, slowest, table, write
from benchmarks.simulate import actions
from lt_core.collectives import ring

MODULES = sorted(p.stem for p in (Path(__file__).parent.parent / "benchmarks").glob("*.py") if p.stem[0] != "_")


def taking(values, log=None, name=""):
    values = iter(values)

    def run():
        if log is not None:
            log.append(name)
        return next(values)

    return run


def test_medians_and_quartiles_of_the_rounds_after_a_warm_up():
    ours, peer = taking([99, 1, 2, 3, 4, 5, 6, 7]), taking([99, 2, 2, 2, 2, 4, 4, 4])
    row = compare("b", "c", ours, peer, "gloo")
    assert (row.ours, row.peer) == (4, 2)
    ratios = sorted([0.5, 1.0, 1.5, 2.0, 1.25, 1.5, 1.75])
    assert (row.low, row.ratio, row.high) == ((ratios[1] + ratios[2]) / 2, ratios[3], (ratios[4] + ratios[5]) / 2)


def test_ours_and_the_peer_take_turns():
    log = []
    compare("b", "c", taking(count(1), log, "ours"), taking(count(1), log, "peer"), "gloo", rounds=9)
    assert log == ["ours", "peer"] * 10


def test_six_rounds_are_too_few():
    with pytest.raises(ValueError, match="6 rounds are too few; expected at least 7"):
        compare("b", "c", taking(count(1)), taking(count(1)), "gloo", rounds=6)


def test_a_row_against_a_law():
    row = against_law("b", "c", taking([5.0] * 8), 10.0)
    assert (row.ratio, row.low, row.high, row.peer_name) == (0.5, 0.5, 0.5, "law") and "torch" not in row.versions


def test_a_round_of_ranks_is_the_slowest_ranks_and_the_first_does_not_count():
    found = slowest([{"ours": [90.0, *range(1, 8)], "gloo": [1.0] * 8}, {"ours": [4.0] * 8, "gloo": [2.0] * 8}])
    assert found == {"ours": [90, 4, 4, 4, 4, 5, 6, 7], "gloo": [2] * 8}
    row = compare_rounds("b", "c", found, "ours", "gloo", unit="B")
    assert (row.ours, row.peer, row.ratio, row.peer_name, row.unit) == (4, 2, 2, "gloo", "B")
    assert compare_rounds("b", "c", found, "gloo", "ours", "plain").peer_name == "plain"


def test_a_row_is_a_json_line_of_these_fields(capsys):
    (row,) = printed([against_law("b", "actions, 1k", taking([5.0] * 8), 10.0)])
    read = json.loads(capsys.readouterr().out)
    assert list(read) == [
        "bench", "case", "ours", "peer", "peer_name", "ratio", "low", "high", "unit", "versions", "cores", "date",
    ]  # fmt: skip
    assert read == row._asdict() and read["cores"] >= 1 and len(read["date"]) == 10 and "python" in read["versions"]


def test_seconds_are_those_of_the_call():
    calls = []
    assert seconds(lambda: calls.append(1))() >= 0 and calls == [1]


ROW = Row("ring", "2 ranks", 0.012345, 0.02, "gloo", 0.617, 0.6, 0.65, "s", {"torch": "2.13"}, 2, "2026-01-02")
TABLE = """| case | ours | peer | ratio | quartiles |
|---|---|---|---|---|
| 2 ranks | 0.0123 s | gloo: 0.02 s | 0.62 | 0.60 - 0.65 |

2026-01-02, 2 cores, torch 2.13."""


def test_a_table():
    assert table([ROW]) == TABLE


def test_a_table_replaces_the_one_between_its_markers_and_nothing_else(tmp_path):
    path = tmp_path / "README.md"
    path.write_text("# Benchmarks\n\n<!-- ring -->\nold\n<!-- /ring -->\n\nlast words\n")
    for _ in range(2):
        write(path, "ring", [ROW])
        assert path.read_text() == f"# Benchmarks\n\n<!-- ring -->\n{TABLE}\n<!-- /ring -->\n\nlast words\n"


def test_a_new_benchmark_goes_to_the_end(tmp_path):
    path = tmp_path / "README.md"
    for bench in ("ring", "tree"):
        write(path, bench, [ROW])
    text = path.read_text()
    assert text.startswith("## ring\n\n<!-- ring -->\n") and text.count(TABLE) == 2
    assert text.index("<!-- /ring -->") < text.index("## tree") and text.endswith("<!-- /tree -->\n")


@pytest.mark.parametrize("name", [name for name in MODULES if name != "rows"])
def test_each_benchmark_has_its_faces_and_its_markers(name):
    path = Path(importlib.util.find_spec(f"benchmarks.{name}").origin)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert {"rows", "main"} <= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert f"<!-- {name} -->" in (path.parent / "README.md").read_text(encoding="utf-8")


SIZES, LARGE = "1 KiB,16 KiB,64 KiB,256 KiB".split(","), "1 MiB,4 MiB,16 MiB,64 MiB".split(",")
SUMS = [f"all-reduce {way}, {ranks} ranks" for way, ranks in product(("in place", "copied"), (2, 4, 8))]
EACH, CELLS = ("2 ranks", "4 ranks"), ("cold start", "empty cell", "all-reduce cell")
FIXED = {  # (case, peer): what earlier and later tables are compared by
    "simulate": {("actions, 65k", "law"), ("actions, 1M", "law")},
    "all_reduce": {
        *((f"ring over point-to-point, 2 ranks, {size}", "gloo") for size in LARGE),
        *((f"{case}, {size}", "gloo") for case, size in product(SUMS, SIZES + LARGE)),
        *((f"{case}, {size}", "raw copy") for case, size in product(SUMS, LARGE)),
    },
    "magics": {(f"{what}, {size}", "ipyparallel") for what, size in product(CELLS, EACH)},
    "data_parallel": {
        *((f"step, {size}, {n} samples", peer) for size in EACH for n in (16, 64) for peer in ("DDP", "plain")),
        ("exposed communication, 1 GB/s link", "plain"),
    },
    "compression": {(f"PowerSGD rank 2, {size}", "DDP powerSGD_hook") for size in EACH},
}
UNTIMED = {  # in the place of what measures: the row's case and its peer
    "compare": lambda bench, case, ours, peer, peer_name, **how: (case, peer_name),
    "against_law": lambda bench, case, *how, **unit: (case, "law"),
    "compare_rounds": lambda bench, case, found, ours, peer, peer_name="", unit="s": (case, peer_name or peer),
    "launch": lambda *fn, **how: [],
    "slowest": lambda by_rank: defaultdict(list),
    "Ours": MagicMock(),
    "Peer": MagicMock(),
    "SMALL": 2,
}


@pytest.mark.parametrize("name", FIXED)
def test_a_benchmark_and_its_table_have_the_fixed_cases(monkeypatch, name):
    if importlib.util.find_spec("ipyparallel") is None:  # a peer; nothing of it runs here
        monkeypatch.setitem(sys.modules, "ipyparallel", MagicMock())
    module = importlib.import_module(f"benchmarks.{name}")
    for what, stand_in in UNTIMED.items():
        if hasattr(module, what):
            monkeypatch.setattr(module, what, stand_in)
    yielded = set(module.rows())
    text = (Path(module.__file__).parent / "README.md").read_text(encoding="utf-8")
    lines = text.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")][1:]
    assert FIXED[name] <= {(case, peer.split(":")[0]) for case, _, peer, *_ in cells} <= yielded


@pytest.mark.parametrize("size", [1, 2, 5])
def test_how_many_actions_the_simulated_ring_has(size):
    assert actions(size) == sum(map(len, ring.schedule(size).lanes))
