"""A machine that has everything; tests take things away from it."""

from lt_core.base.cluster import Wire
from lt_core.cli.facts import Facts, Gpu, Pair

GB = 10**9
H200 = Gpu("NVIDIA H200", 141 * GB)
WHOLE = Facts(
    platform="linux",
    system="Linux 6.8.0 (x86_64)",
    python="3.11.9",
    torch="2.13.0+cu130",
    cores=16,
    memory_bytes=64 * GB,
    scratch="/run/user/1000/lt_core",
    scratch_bytes=6 * GB,
    shared_bytes=32 * GB,
    gpus=(H200,) * 8,
    peers=True,
    driver=True,
    backends=("gloo", "nccl"),
    rendezvous=True,
    pair=Pair("nccl", 1024, 4.25, Wire("here", 2.5e-5, 1.5e9)),
)
