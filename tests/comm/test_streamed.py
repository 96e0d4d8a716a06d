"""A copy that goes round the caches is a copy to the bit, and where there is no such copy a plain one is made."""

import platform

import pytest
import torch

from lt_core.comm import streamed
from lt_core.comm.streamed import LARGE_BYTES, LEAST_BYTES, copier, copy
from tests.comm.shared_memory.test_verbs import STAGE_BYTES, WAYS, placed, run, same, total, values
from tests.sharing import on_shared_memory

STREAMS = bool(streamed._kernels())
PIPS = platform.machine() == "x86_64" and torch.backends.mkl.is_available() and torch.version.cuda is None


@pytest.fixture
def calls(monkeypatch):
    """How many copies went round the caches."""
    made = []
    known = streamed._kernels()
    noted = {kind: lambda *args, do=do: (made.append(args), do(*args)) for kind, do in known.items()}
    monkeypatch.setattr(streamed, "_kernels", lambda: noted)
    return made


@pytest.mark.skipif(not PIPS, reason="another build of torch")
def test_the_build_for_cpus_has_it():
    assert {torch.float32, torch.float64} == streamed._kernels().keys()


def noise(elements, dtype):
    """Any bits: numbers, infinities, and NaN of every kind."""
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    most = torch.iinfo(kind).max
    generator = torch.Generator().manual_seed(elements)
    return torch.randint(-most, most, (elements,), generator=generator, dtype=kind).view(dtype)


def copied(x, out):
    copy(out, x)
    return same(out.contiguous(), x.contiguous().resolve_neg())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("ahead", [0, 1, 3])
@pytest.mark.parametrize("more", [0, 1, 5, 1000])
def test_every_bit_arrives_and_none_beside(calls, dtype, ahead, more):
    """However the two lie in their lines of memory, and whatever the bits are."""
    elements = LEAST_BYTES // dtype.itemsize + more
    around = torch.zeros(elements + 40, dtype=dtype)
    assert copied(noise(elements + ahead, dtype)[ahead:], around[7 : 7 + elements])
    assert not around[:7].any() and not around[7 + elements :].any()
    assert len(calls) == STREAMS


@pytest.mark.parametrize("shape", [(1024, 300), (3, 1 << 18)])
def test_a_matrix(calls, shape):
    x = noise(shape[0] * shape[1], torch.float32).view(shape)
    assert copied(x, torch.zeros(shape)) and len(calls) == STREAMS


PLAIN = {
    "small": lambda: (noise(LEAST_BYTES // 4 - 1, torch.float32), torch.zeros(LEAST_BYTES // 4 - 1)),
    "strided": lambda: (noise(2 << 18, torch.float32).view(-1, 2).t(), torch.zeros(2, 1 << 18)),
    "into strides": lambda: (noise(2 << 18, torch.float32).view(2, -1), torch.zeros(1 << 18, 2).t()),
    "negated": lambda: (torch._neg_view(noise(1 << 18, torch.float32)), torch.zeros(1 << 18)),
    "no memory": lambda: (torch._efficientzerotensor(1 << 18), torch.ones(1 << 18)),
    "half": lambda: (noise(LEAST_BYTES, torch.float16), torch.zeros(LEAST_BYTES, dtype=torch.float16)),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_what_cannot_stream_is_copied_plainly(calls, kind):
    assert copied(*PLAIN[kind]()) and not calls


def test_a_tensor_on_another_device_is_copied_by_torch(calls):
    x = torch.empty(LEAST_BYTES, device="meta")
    copy(torch.empty_like(x), x)
    assert not calls


@pytest.mark.parametrize("missing", ["no library", "no such function"])
def test_a_torch_without_mkl(monkeypatch, tmp_path, missing):
    library = tmp_path / "lib" / "libtorch_cpu.so"
    if missing == "no such function":
        library.parent.mkdir()
        library.symlink_to(_libc())
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "__init__.py"))
    streamed._kernels.cache_clear()
    try:
        assert streamed._kernels() == {} and copied(noise(1 << 18, torch.float32), torch.zeros(1 << 18))
    finally:
        monkeypatch.undo()
        streamed._kernels.cache_clear()


def test_only_parts_of_large_tensors_stream():
    assert copier(LARGE_BYTES) is copy and copier(LARGE_BYTES - 1) is torch.Tensor.copy_


def collectives(comm, elements, dtype, way):
    """The verbs that copy, on tensors of `elements` a rank, against what one process makes of them."""
    xs = [values(r, elements, dtype) for r in range(comm.size)]
    summed, told, mine = (placed(comm, xs[comm.rank], way) for _ in range(3))
    out = torch.zeros(comm.size * elements, dtype=dtype)
    comm.all_reduce(summed)
    comm.broadcast(told, comm.size - 1)
    comm.all_gather(out, mine)
    return same(summed, total(xs)), same(told, xs[-1]), same(out, torch.cat(xs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [2, 3])
def test_collectives_of_large_tensors_stream_and_are_right(monkeypatch, calls, size, way, dtype):
    monkeypatch.setattr(streamed, "LARGE_BYTES", 0)
    elements = 3 * STAGE_BYTES // dtype.itemsize + 5
    assert run(collectives, size, elements, dtype, way) == [(True, True, True)] * size
    assert bool(calls) == STREAMS


@on_shared_memory
def test_what_a_process_streams_is_all_there_when_another_reads_it(ranks):
    """Large enough as it is, and often: nothing orders such stores but what `copy` does after them."""

    def fn(comm):
        elements = LARGE_BYTES // 4
        return [collectives(comm, elements + k, torch.float32, way) for k, way in enumerate(WAYS * 3)]

    assert ranks(2).run(fn) == [[(True, True, True)] * 6] * 2


def _libc():
    """A library that is there, and has no matrices."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if "libc.so" in line or "libc-2" in line)
