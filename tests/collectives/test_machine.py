"""The machine, seen from one rank: where what arrives lands, which memory it needs, what is not sent."""

import torch

from lt_core.base.traffic import Traffic
from lt_core.collectives import Scratch, naive, of_rounds, ring
from lt_core.collectives.checks import units
from lt_core.collectives.machine import Machine
from lt_core.collectives.rounds import ADD, COPY, Message


class Wire:
    """A communicator of two, seen from rank 0: notes where each message lands and lets `arrives` come in."""

    rank, size, device, backend, timeout_s = 0, 2, torch.device("cpu"), "none", 1.0

    def __init__(self, arrives):
        self.traffic, self.arrives, self.landed, self.sent, self.aborted = Traffic(), arrives, [], [], ""

    def exchange(self, sends, receives):
        self.sent += [x.tolist() for x, _ in sends]
        for buffer, _ in receives:
            buffer.copy_(torch.full_like(buffer, self.arrives))
            self.landed.append(buffer)

    def abort(self, reason):
        self.aborted = reason


def turn(wire, flat, cut, schedule, in_turn=True, scratch=None):
    """Run rank 0's lane."""
    exchanges = schedule.exchanges(0)
    machine = Machine(wire, flat, cut, exchanges, in_turn, scratch)
    for actions in exchanges:
        machine.run(actions)


def test_units_cut_the_tensor():
    machine = Machine(Wire(0), torch.arange(10), 4, [], in_turn=True)
    pieces = [
        machine.part(a).tolist() for a in of_rounds("all", 2, [[Message(0, 1, u, ADD) for u in range(4)]]).lanes[0]
    ]
    assert pieces == [[0, 1], [2, 3, 4], [5, 6], [7, 8, 9]]


def test_a_schedule_cuts_up_to_its_last_unit():
    assert [units(s) for s in (ring.schedule(1), ring.schedule(4), naive.schedule(4))] == [1, 4, 4]


def test_what_is_kept_lands_in_its_place():
    wire, flat = Wire(9), torch.arange(4)
    turn(wire, flat, 2, of_rounds("keep", 2, [[Message(0, 1, 0, COPY), Message(1, 0, 1, COPY)]]))
    assert flat.tolist() == [0, 1, 9, 9]
    assert wire.landed[0].data_ptr() == flat[2:].data_ptr()


def test_what_is_added_lands_in_one_buffer_in_all_rounds():
    wire, flat = Wire(1), torch.zeros(6, dtype=torch.int64)
    turn(wire, flat, 3, of_rounds("add", 2, [[Message(1, 0, unit, ADD)] for unit in range(3)]))
    assert flat.tolist() == [1] * 6
    assert len({buffer.data_ptr() for buffer in wire.landed}) == 1


def test_what_may_arrive_at_once_has_memory_of_its_own():
    wire, adds = Wire(1), of_rounds("add", 2, [[Message(1, 0, unit, ADD)] for unit in range(3)])
    turn(wire, torch.zeros(6), 3, adds, in_turn=False)
    assert len({buffer.data_ptr() for buffer in wire.landed}) == 3


def test_uneven_chunks_still_need_one_buffer():
    wire = Wire(1)
    turn(wire, torch.zeros(10), 4, of_rounds("add", 2, [[Message(1, 0, unit, ADD)] for unit in range(4)]))
    assert [len(buffer) for buffer in wire.landed] == [2, 3, 2, 3]
    assert len({buffer.data_ptr() for buffer in wire.landed}) == 1


def test_a_kept_scratch_is_used_again():
    wire, scratch, take = Wire(1), Scratch(), of_rounds("add", 2, [[Message(1, 0, 0, ADD)]])
    for dtype in (torch.float32, torch.float32, torch.int64):
        turn(wire, torch.zeros(6, dtype=dtype), 3, take, scratch=scratch)
    first, second, third = wire.landed
    assert first.data_ptr() == second.data_ptr() != third.data_ptr()
    assert third.dtype == torch.int64


def test_what_a_round_still_sends_is_not_overwritten_by_what_it_takes():
    wire, flat = Wire(9), torch.arange(4)
    turn(wire, flat, 1, of_rounds("swap", 2, [[Message(0, 1, 0, COPY), Message(1, 0, 0, COPY)]]))
    assert wire.sent == [[0, 1, 2, 3]]
    assert wire.landed[0].data_ptr() != flat.data_ptr()
    assert flat.tolist() == [9, 9, 9, 9]


def test_a_message_without_elements_is_not_sent():
    wire = Wire(1)
    turn(wire, torch.zeros(1), 2, of_rounds("add", 2, [[Message(0, 1, 0, ADD), Message(1, 0, 0, ADD)]]))
    assert wire.sent == wire.landed == []


def test_its_abort_is_the_communicators():
    wire = Wire(0)
    Machine(wire, torch.zeros(1), 1, [], in_turn=True).abort("rank 3 is gone")
    assert wire.aborted == "rank 3 is gone"
