"""What each fact about a machine means for the course, and the next step where something is missing.

facts -> finding, finding, ...     ok    it is there
                                   note  it is missing or small; the course goes on, and `step` says how to better it
                                   STOP  nothing runs before `step` is done
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from lt_core.base.units import bytes_text, rate_text, seconds_text
from lt_core.cli.facts import SCRATCH_BYTES, Facts
from lt_core.comm.limits import RANK_BYTES

SHARED_BYTES = 256 * 2**20  # containers come with 64 MB, which a handful of NCCL's or a data loader's buffers fill


class Finding(NamedTuple):
    """One line of the doctor's page: a thing, what was found, and the next step where there is one."""

    thing: str
    found: str
    step: str = ""
    stops: bool = False

    @property
    def word(self) -> str:
        """ok, note or STOP."""
        return "STOP" if self.stops else "note" if self.step else "ok"


def findings(facts: Facts) -> list[Finding]:
    """Every finding, in the order in which one thing stands on the next; on native Windows only that it is."""
    first = system(facts)
    if first.stops:
        return [first]
    rest = (cores, memory, scratch, shared, gpus, backends, auto, rendezvous, pair, link)
    return [first, *filter(None, (rule(facts) for rule in rest))]


def system(facts: Facts) -> Finding:
    """The operating system, and how far it is supported."""
    found = f"{facts.system}, Python {facts.python}, torch {facts.torch}"
    if facts.platform == "win32":
        step = "native Windows is not supported: use WSL 2 (in PowerShell: wsl --install), a container, or Binder"
        return Finding("system", facts.system, step, stops=True)
    if facts.platform == "darwin":
        step = (
            "macOS works through named fall-backs (ranks meet over gloo instead of shared memory, a pipe tells of a "
            "parent's death); it is untested"
        )
        return Finding("system", found, step)
    if facts.platform != "linux":
        return Finding("system", found, "only Linux is tested (WSL 2 included); a container with Linux works anywhere")
    return Finding("system", found)


def cores(facts: Facts) -> Finding:
    """How many ranks really run at once."""
    alone = "ranks take turns here: every count stays true, seconds grow; run labs with 2 ranks"
    return Finding("cores", f"{facts.cores}", alone if facts.cores < 2 else "")


def memory(facts: Facts) -> Finding:
    """How many ranks fit."""
    fit = facts.memory_bytes // RANK_BYTES
    found = f"{bytes_text(facts.memory_bytes)} free, room for {fit:,} ranks of {bytes_text(RANK_BYTES)}"
    if fit < 2:
        step = f"two ranks need {bytes_text(2 * RANK_BYTES)}: close programs, or give the container more memory"
        return Finding("memory", found, step, stops=True)
    if fit < 4:
        return Finding("memory", found, f"labs start 4 ranks: ask for {fit} (ltlab ring --ranks {fit}), or free memory")
    if fit < 8:
        return Finding("memory", found, "enough for every lab; make test starts 8 ranks and wants more")
    return Finding("memory", found)


def scratch(facts: Facts) -> Finding:
    """Whether the folder in which ranks meet can take their files."""
    found = f"{facts.scratch}, {bytes_text(facts.scratch_bytes)} free"
    if facts.scratch_bytes < SCRATCH_BYTES:
        step = f"ranks meet over files there and need {bytes_text(SCRATCH_BYTES)}: free some, or set XDG_RUNTIME_DIR"
        return Finding("ranks meet in", found, step, stops=True)
    return Finding("ranks meet in", found)


def shared(facts: Facts) -> Finding:
    """Shared memory between processes, which containers keep small."""
    if facts.shared_bytes is None:
        return Finding(
            "shared memory",
            "none that can be measured",
            "not needed: ranks send over gloo or NCCL; backend='shared_memory' takes gloo here",
        )
    small = "backend='shared_memory', NCCL and torch's data loaders want more; in Docker: --shm-size=1g"
    found = f"{bytes_text(facts.shared_bytes)} free"
    return Finding("shared memory", found, small if facts.shared_bytes < SHARED_BYTES else "")


def gpus(facts: Facts) -> Finding:
    """The GPUs that torch can use, or why it can use none."""
    if facts.gpus:
        peers = {True: ", reading each other's memory", False: ", not reading each other's memory", None: ""}
        alike = Counter(f"{gpu.name} ({bytes_text(gpu.memory_bytes)})" for gpu in facts.gpus)
        return Finding("GPUs", ", ".join(f"{n} x {name}" for name, n in alike.items()) + peers[facts.peers])
    if facts.driver:
        step = f"torch {facts.torch} cannot use the NVIDIA driver that is here: install a CUDA build (pytorch.org)"
        return Finding("GPUs", "none that torch can use", step)
    step = "not needed: ranks are processes on the CPU; to use NVIDIA GPUs, install their driver and a CUDA torch"
    return Finding("GPUs", "none", step)


def backends(facts: Facts) -> Finding:
    """The wires torch was built with."""
    found = ", ".join(facts.backends) or "none"
    if "gloo" not in facts.backends:
        return Finding("torch's wires", found, "this torch was built without gloo: pip install torch", stops=True)
    if facts.gpus and "nccl" not in facts.backends:
        return Finding("torch's wires", found, "GPUs talk over NCCL: install a CUDA build of torch for Linux")
    return Finding("torch's wires", found)


def auto(facts: Facts) -> Finding:
    """Which backend a launch takes when none is named, and why."""
    ranks = len(facts.gpus)
    if ranks and "nccl" in facts.backends:
        up_to = f"up to {ranks} ranks (a GPU each)" if ranks > 1 else "1 rank (one GPU)"
        return Finding("auto takes", f"nccl for {up_to}, gloo on the CPU for more")
    why = "this torch has no NCCL" if ranks else "there is no GPU for each rank"
    return Finding("auto takes", f"gloo on the CPU: {why}")


def rendezvous(facts: Facts) -> Finding:
    """How the processes of one launch find each other."""
    if facts.rendezvous:
        return Finding("rendezvous", "over a file (ltfile): no port is opened")
    step = "works; torchrun opens a port for it. Without: install this folder (pip install -e .)"
    return Finding("rendezvous", "ltfile is not found, so static with a free port", step)


def pair(facts: Facts) -> Finding | None:
    """The proof: two real ranks summed a tensor, and the sum is right."""
    if facts.trouble:
        step = "the whole error stands below; what is marked above comes first, then try: ltlab ring --ranks 2"
        return Finding("two ranks", "did not come to a sum", step, stops=True)
    if facts.pair:
        done = facts.pair
        found = f"all-reduce of {done.elements:,} numbers over {done.backend}: right on both"
        return Finding("two ranks", f"{found}, {seconds_text(done.seconds)} from start to end")
    return None


def link(facts: Facts) -> Finding | None:
    """The wire between two ranks, measured by ping-pong."""
    if facts.pair:
        wire = facts.pair.wire
        return Finding("link", f"{seconds_text(wire.latency_s)} latency, {rate_text(wire.bytes_per_s)}, between them")
    return None
