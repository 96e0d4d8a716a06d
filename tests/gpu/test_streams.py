"""On a GPU each worker has a CUDA stream of its own: work overlaps, needs hold across streams, times are its own."""

import pytest
import torch

from lt_core.base.trace import Trace
from lt_core.engine.costs import Unit
from lt_core.engine.emulate import emulate
from lt_core.engine.execute import execute
from tests.typed import typed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
OFFLOAD = typed("0: 0F0 0OUT0 1F0 1OUT0 2F0", {"0OUT0": "0F0", "1OUT0": "1F0"})


class Offload:
    """F multiplies a matrix into the value of its unit, OUT copies that to the host; nothing waits for the device."""

    def __init__(self):
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.x = torch.eye(2048, device=self.device) * 2
        self.values, self.host, self.streams = {}, {}, {}

    def run(self, actions):
        (a,) = actions
        self.streams[a.op.stream] = torch.cuda.current_stream()
        if a.op.stream == "compute":
            value = torch.full_like(self.x, float(a.unit + 1))
            for _ in range(20):
                value = value @ self.x / 2
            self.values[a.unit] = value
        else:
            self.host[a.unit] = torch.empty(self.x.shape, pin_memory=True)
            self.host[a.unit].copy_(self.values[a.unit], non_blocking=True)

    def abort(self, reason):
        raise AssertionError(reason)


def test_needs_hold_across_streams_and_all_is_over_on_return():
    machine, trace = Offload(), Trace("t")
    execute(OFFLOAD, 0, machine, trace)
    assert [machine.host[unit].unique().tolist() for unit in (0, 1)] == [[1.0], [2.0]]
    assert machine.values[2].unique().tolist() == [3.0]
    assert len({machine.streams["compute"], machine.streams["d2h"], torch.cuda.current_stream()}) == 3


def test_spans_are_the_devices_and_keep_the_order_of_needs():
    machine, trace = Offload(), Trace("t")
    execute(OFFLOAD, 0, machine, trace)
    at = {s.name: s for s in trace.spans}
    assert all(s.end_s > s.start_s for s in trace.spans) and trace.makespan_s() < 10
    assert at["0OUT0"].start_s >= at["0F0"].end_s - 1e-4 and at["1F0"].start_s >= at["0F0"].end_s - 1e-4


def test_one_stream_is_the_callers():
    machine = Offload()
    execute(typed("0: 0F0 1F0"), 0, machine, Trace("t"))
    assert machine.streams["compute"] == torch.cuda.current_stream()
    assert machine.values[1].unique().tolist() == [2.0]


def test_an_emulated_device_holds_other_streams_too():
    machine, trace = Offload(), Trace("t")
    execute(OFFLOAD, 0, emulate(machine, Unit(by={"F": 5.0}), 0.01), trace)
    assert [machine.host[unit].unique().tolist() for unit in (0, 1)] == [[1.0], [2.0]]
    assert all(s.end_s - s.start_s >= 0.0499 for s in trace.spans if s.stream == "compute")
