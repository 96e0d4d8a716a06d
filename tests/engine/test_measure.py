"""A model's layers are timed alone, on real inputs, and the model is bit for bit what it was."""

import copy
import time

import pytest
import torch
from torch import nn

from lt_core.base.errors import UserError
from lt_core.engine.measure import measure


def model():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(6, 8),
        nn.BatchNorm1d(8),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(8, 2, bias=False),
    )


def x():
    return torch.arange(30, dtype=torch.float32).view(5, 6) / 7


def test_bytes_and_names_of_each_layer():
    profile = measure(model(), x(), repeats=1)
    assert [(p.name, p.output_bytes, p.parameter_bytes) for p in profile.layers] == [
        ("0 Linear", 5 * 8 * 4, (6 * 8 + 8) * 4),
        ("1 BatchNorm1d", 5 * 8 * 4, 16 * 4),
        ("2 ReLU", 5 * 8 * 4, 0),
        ("3 Dropout", 5 * 8 * 4, 0),
        ("4 Flatten", 5 * 8 * 4, 0),
        ("5 Linear", 5 * 2 * 4, 8 * 2 * 4),
    ]
    assert (profile.device, profile.input_bytes) == ("cpu", 5 * 6 * 4)
    assert all(p.forward_s > 0 and p.backward_s > 0 for p in profile.layers)


class Busy(nn.Module):
    """Takes a given time on the processor, forward and three times that backward."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.calls = seconds, 0

    def forward(self, x):
        self.calls += 1
        spin(self.seconds)
        x.register_hook(lambda gradient: spin(3 * self.seconds))
        return x * 2


def spin(seconds):
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


def test_seconds_are_those_of_the_layer():
    quick, slow = measure(nn.Sequential(Busy(0.001), Busy(0.01)), torch.ones(3), repeats=3).layers
    assert quick.forward_s >= 0.001 and slow.forward_s >= 0.01 and slow.backward_s >= 0.03
    assert slow.backward_s > slow.forward_s > quick.forward_s


def test_repeats_and_the_budget_bound_the_runs():
    few, none = Busy(0.0), Busy(0.0)
    measure([few], torch.ones(3), repeats=4)
    assert few.calls == 4 + 2  # and two to warm up
    profile = measure([none], torch.ones(3), repeats=1000, budget_s=0.0)
    assert none.calls == 1 and profile.layers[0].forward_s > 0


def test_a_median_does_not_mind_one_slow_run():
    class Once(Busy):
        def forward(self, x):
            self.seconds = 0.05 if self.calls == 4 else 0.0
            return super().forward(x)

    assert measure([Once(0.0)], torch.ones(3), repeats=5).layers[0].forward_s < 0.05


def test_the_model_is_left_as_it_was():
    m = model()
    m[0].weight.grad = torch.ones(8, 6)
    state, grads = copy.deepcopy(m.state_dict()), [p.grad for p in m.parameters()]
    buffers, seen = dict(m.named_buffers()), torch.get_rng_state()
    given = x().requires_grad_()
    measure(m, given, repeats=2)
    assert all(torch.equal(value, state[name]) for name, value in m.state_dict().items())
    assert all(buffer is buffers[name] for name, buffer in m.named_buffers())
    assert all(p.grad is grad for p, grad in zip(m.parameters(), grads)) and grads[0].eq(1).all()
    assert torch.equal(torch.get_rng_state(), seen) and m.training and given.grad is None
    assert torch.equal(given, x())


def test_it_is_left_as_it_was_after_an_error_too():
    class Breaks(nn.Module):
        def forward(self, x):
            raise KeyError("layer")

    m = nn.Sequential(nn.BatchNorm1d(6), Breaks())
    state, seen = copy.deepcopy(m.state_dict()), torch.get_rng_state()
    with pytest.raises(KeyError):
        measure(m, x())
    assert all(torch.equal(value, state[name]) for name, value in m.state_dict().items())
    assert torch.equal(torch.get_rng_state(), seen)


def test_a_layer_that_puts_another_buffer_in_its_place():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count = self.count + 1
            return x + self.count

    layer = Counts()
    before = layer.count
    measure([layer], x(), repeats=2)
    assert layer.count is before and before.item() == 0


@pytest.mark.parametrize("kind", [nn.ModuleList, list, tuple, iter], ids=lambda kind: kind.__name__)
def test_any_chain_of_modules(kind):
    layers = [nn.Linear(6, 4), nn.Tanh()]
    assert [p.name for p in measure(kind(layers), x(), repeats=1).layers] == ["0 Linear", "1 Tanh"]


def test_names_are_the_models_own_and_a_layer_may_come_twice():
    twice = nn.Linear(6, 6)
    m = nn.Sequential()
    for name, layer in (("in", twice), ("act", nn.Tanh()), ("again", twice)):
        m.add_module(name, layer)
    assert [p.name for p in measure(m, x(), repeats=1).layers] == ["in Linear", "act Tanh", "again Linear"]


def test_integers_frozen_layers_and_what_has_no_gradient():
    frozen = nn.Linear(4, 4).requires_grad_(False)
    layers = measure([nn.Embedding(10, 4), frozen, nn.Identity()], torch.tensor([[1, 2], [3, 4]]), repeats=1).layers
    assert [p.output_bytes for p in layers] == [2 * 2 * 4 * 4] * 3 and all(p.backward_s > 0 for p in layers)
    assert layers[0].parameter_bytes == 160

    class Index(nn.Module):
        def forward(self, x):
            return x.argmax(-1)

    (only,) = measure([Index()], x(), repeats=1).layers
    assert only.backward_s == 0 and only.output_bytes == 5 * 8


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference_mode"])
def test_under_a_mode_without_gradients(mode):
    chain = [nn.Linear(6, 4)]
    with mode():
        (layer,) = measure(chain, x(), repeats=1).layers
    assert layer.backward_s > 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex64])
def test_other_dtypes(dtype):
    (layer,) = measure([nn.Linear(6, 4, dtype=dtype)], x().to(dtype), repeats=1).layers
    assert layer.output_bytes == 5 * 4 * dtype.itemsize and layer.backward_s > 0


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (
            nn.Sequential(),
            "Sequential is no chain of layers; got no layers; expected nn.Sequential, or modules in order",
        ),
        ([], "list is no chain of layers; got no layers"),
        (nn.Linear(6, 4), "Linear is no chain of layers; got no layers"),
        ([nn.Tanh(), torch.tanh], "list is no chain of layers; got Tanh, builtin_function_or_method"),
        ("ab", "str is no chain of layers; got str, str"),
        (
            nn.Sequential(nn.LSTM(6, 4)),
            "layer 0 LSTM cannot stand in a chain; got tuple; expected one tensor as its output",
        ),
    ],
    ids=["empty", "empty list", "no chain", "a function", "text", "a tuple"],
)
def test_what_is_no_chain(chain, message):
    with pytest.raises(UserError) as caught:
        measure(chain, x())
    assert message in str(caught.value)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_by_its_events():
    m = model().cuda()
    profile = measure(m, x().cuda(), repeats=3)
    assert profile.device == torch.cuda.get_device_name() and all(0 < p.forward_s < 1 for p in profile.layers)
