"""The house stands: imports go down the floors only, heavy libraries stay where they belong, files stay short."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TECHNIQUES = (
    "accumulation precision remat offload "
    "data_parallel pipeline partition tensor_parallel layouts experts "
    "compression optim zero models data"
).split()
FLOORS = [
    ["base"],
    ["engine", "comm"],
    ["collectives"],
    TECHNIQUES,
    ["train", "planner", "views"],
    ["teaching", "magics", "cli"],
]
FLOOR = {folder: number for number, folders in enumerate(FLOORS) for folder in folders}
EDGES = set(  # on one floor, from the folder that uses to the folder it uses; a further one stands here with its reason
    "pipeline>remat pipeline>accumulation offload>remat partition>pipeline partition>data_parallel optim>compression "
    "zero>offload zero>precision zero>optim zero>remat zero>accumulation cli>teaching".split()
)
SHOWS = {"views", "teaching", "magics"}
MAY_IMPORT = {"plotly": SHOWS, "ipywidgets": SHOWS, "anywidget": SHOWS, "IPython": SHOWS, "zmq": {"comm/group"}}
LATE = {"plotly", "scipy", "sklearn"}  # imported in the function that needs them: sklearn alone takes 0.8 s
ENVIRONMENT = {"comm/launch.py", "comm/host.py", "comm/group/rank.py", "cli"}
BY_PATH = {"comm/host.py", "comm/keeper.py"}  # run or loaded by their path, without this package
SYSTEM = ("/proc", "/dev/shm", "prctl")  # what one operating system has: asked in comm/host.py only


def imports(node: ast.AST, package: list[str], where: str = "module") -> Iterator[tuple[list[str], str]]:
    """Yield each imported name in parts, and where it is imported: module, function, or typing (hints only)."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name.split("."), where) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            above = package[: len(package) + 1 - child.level] if child.level else []
            module = child.module.split(".") if child.module else []
            yield from (([*above, *module, alias.name], where) for alias in child.names)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imports(child, package, "function")
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from imports(child, package, "typing")
        else:
            yield from imports(child, package, where)


def within(path: str, places: set[str]) -> bool:
    return any(path == place or path.startswith(place + "/") for place in places)


def import_faults(path: str, parts: list[str], where: str) -> Iterator[str]:
    """Yield what is wrong with one import in the file at `path` (from lt_core/ on)."""
    name, top, here = ".".join(parts), parts[0], path.split("/")[0]
    if path in BY_PATH and top not in sys.stdlib_module_names:
        yield f"imports {name}: this file runs by its path, with the standard library only"
    if top == "lt_core":
        there = parts[1] if len(parts) > 1 else ""
        knows_base_alone = here == "views" or path == "engine/simulate.py"
        if there not in FLOOR and not there.startswith("__"):  # lt_core.__version__ is anybody's
            yield f"imports {name}: name the folder and file it stands in"
        elif here == there == "views" or there.startswith("__"):
            return
        elif knows_base_alone and there != "base":
            yield f"imports {name}: it knows base alone"
        elif here != there and FLOOR[here] <= FLOOR[there] and f"{here}>{there}" not in EDGES:
            yield f"imports {name}: {here} (floor {FLOOR[here]}) may not know {there} (floor {FLOOR[there]})"
    elif top in {"tests", "labs", "benchmarks"}:
        yield f"imports {name}: the package stands without it"
    elif where != "typing":
        if top in MAY_IMPORT and not within(path, MAY_IMPORT[top]):
            yield f"imports {name}: only {', '.join(sorted(MAY_IMPORT[top]))} may"
        if top in LATE and where == "module":
            yield f"imports {name} on import: move it into the function that needs it"
        if top == "torch" and here == "base" and where == "module":
            yield f"imports {name} on import: base is plain data"


def faults(path: str, source: str) -> list[str]:
    """Return all faults of one file, its path counted from lt_core/."""
    tree, package = ast.parse(source), ["lt_core", *path.split("/")[:-1]]
    found = [fault for parts, where in imports(tree, package) for fault in import_faults(path, parts, where)]
    nodes = list(ast.walk(tree))
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in nodes}
    if path == "engine/simulate.py" and "Op" in names:
        found.append("names Op: the one simulator knows streams only")
    if {"environ", "getenv"} & names and not within(path, ENVIRONMENT):
        found.append("reads the environment: it is an argument here")
    texts = [node.args[0] for node in nodes if isinstance(node, ast.Call) and node.args]
    for text in texts:
        if isinstance(text, ast.Constant) and str(text.value).startswith(SYSTEM) and path != "comm/host.py":
            found.append(f"asks {text.value}: only comm/host.py knows one operating system")
    if len(source.splitlines()) > 200:
        found.append(f"{len(source.splitlines())} lines: at most 200, so make it a folder with the same faces")
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno >= 40:
            found.append(f"{node.name} has {node.end_lineno - node.lineno + 1} lines: at most 40")
    return found


FILES = sorted(path.relative_to(ROOT / "lt_core").as_posix() for path in (ROOT / "lt_core").rglob("*.py"))


def test_every_folder_has_its_floor():
    assert {path.split("/")[0] for path in FILES if "/" in path} <= set(FLOOR)


@pytest.mark.parametrize("folder", sorted({path.rpartition("/")[0] for path in FILES if "/" in path}))
def test_each_file_stands_in_the_table_of_its_folder(folder):
    """Each package opens with a table of its files: there a reader looks first, and a new file gets its row."""
    place = ROOT / "lt_core" / folder
    rows = re.findall(r"^\|.*\|$", (place / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    files = {path.stem for path in place.glob("*.py")} | {path.parent.name for path in place.glob("*/__init__.py")}
    assert files - {"__init__"} - set(re.findall(r"\w+", "\n".join(rows))) == set()


@pytest.mark.parametrize("path", [path for path in FILES if "/" in path])
def test_no_fault(path):
    assert faults(path, (ROOT / "lt_core" / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("base/action.py", "from lt_core.engine import simulate", "base (floor 0) may not know engine (floor 1)"),
        ("engine/execute.py", "from lt_core.comm.comm import Comm", "engine (floor 1) may not know comm (floor 1)"),
        ("comm/threads.py", "from ..engine import drive", "comm (floor 1) may not know engine (floor 1)"),
        ("remat/rotor.py", "import lt_core.pipeline.gpipe", "remat (floor 3) may not know pipeline (floor 3)"),
        ("views/gantt.py", "from lt_core.engine.costs import Costs", "it knows base alone"),
        ("engine/simulate.py", "from lt_core.engine.costs import unit", "it knows base alone"),
        ("engine/simulate.py", "import x\ndef f(a): return a.op is x.Op.SEND", "names Op"),
        ("cli/ring.py", "from lt_core import Schedule", "name the folder and file"),
        ("cli/bench.py", "import benchmarks.simulate", "the package stands without it"),
        ("planner/search.py", "def f():\n    import plotly", "only magics, teaching, views may"),
        ("comm/processes.py", "import zmq", "only comm/group may"),
        ("views/gantt.py", "import plotly.graph_objects as go", "on import: move it into the function"),
        ("planner/search.py", "from scipy.optimize import milp", "on import: move it into the function"),
        ("base/units.py", "import torch", "base is plain data"),
        ("comm/host.py", "import psutil", "the standard library only"),
        ("engine/execute.py", "import os\nSLOW = os.environ.get('SLOW')", "reads the environment"),
        ("engine/watch.py", "open('/proc/self/statm')", "only comm/host.py knows"),
        ("base/units.py", "x = 1\n" * 201, "201 lines"),
        ("base/units.py", "def f():\n" + "    x = 1\n" * 40, "f has 41 lines"),
    ],
)
def test_a_planted_fault_is_found(path, source, fault):
    assert [found for found in faults(path, source) if fault in found]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("pipeline/stage.py", "from lt_core.remat import machine"),
        ("views/gantt.py", "from lt_core.views.style import INK\ndef f():\n    import plotly"),
        ("base/traffic.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from torch import Tensor"),
        ("comm/group/wire.py", "import zmq"),
        ("comm/launch.py", "import os\nos.environ['RANK']"),
        ("comm/host.py", "open('/proc/self/stat')"),
    ],
)
def test_what_is_allowed_is_not_a_fault(path, source):
    assert faults(path, source) == []


@pytest.mark.processes
def test_floors_0_to_3_import_on_a_bare_node():
    modules = [
        ".".join(["lt_core", *path.removesuffix(".py").removesuffix("/__init__").split("/")])
        for path in FILES
        if "/" in path and FLOOR[path.split("/")[0]] <= 3 and not path.startswith("comm/group/")
    ]
    bare = "import sys; sys.modules.update(dict.fromkeys('zmq plotly ipywidgets anywidget IPython'.split()))\n"
    heavy = "\nassert not {'scipy', 'sklearn'} & set(sys.modules), 'heavy'\nimport torch\n"
    script = bare + "import lt_core, " + ", ".join(modules) + heavy + "assert not torch.cuda.is_initialized()"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
