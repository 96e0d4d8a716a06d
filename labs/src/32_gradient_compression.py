# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] tags=["question"]
# # 32 - Gradient compression: send less, and still learn
#
# Four machines train one model over a wire of 100 Mbit/s. A step
# computes for 40 ms and then talks for 208 ms: five sixths of your day
# are a wire. **Can you send less, and still learn the same?**
#
# *Builds on [lab 20](20_all_reduce.ipynb): a ring sends 2 n (p − 1) / p
# bytes, whatever p is. Takes 60 minutes, 4 ranks, 35 s of machine time.*
#
# The next cell imports what the others use, and takes some 4 s.

# %% tags=["setup"]
import torch

from lt_core import compression as lossy
from lt_core import launch, magics
from lt_core.base.cluster import KITCHEN, OFFICE, RACK
from lt_core.collectives import Mean, ring
from lt_core.compression import QSGD, Coarse, ErrorFeedback, GradZip
from lt_core.compression import Half, MomentumCorrection, OneBit
from lt_core.compression import Packed, PowerSGD, TernGrad, TopK
from lt_core.data import digits, text
from lt_core.models import chain, gpt
from lt_core.teaching import bill, check, predict, reveal
from lt_core.teaching import run_script, verify
from lt_core.views import Point, Three, compression, courses, curves
from lt_core.views import explore, show, witnesses

magics.load()

# %% [markdown] tags=["predict"]
# ## Predict it
#
# The plainest idea: send the largest elements only, as pairs of index
# and value, 32 bits each. What share of all elements that is, is called
# the *density*; a gradient sent whole is *dense*. Pairs cannot be summed
# on the way, so each rank sends its own to all others. **With 4 ranks,
# at which density do the pairs cost as much as the dense ring?**

# %% tags=["predict"]
predict(
    "32.break_even",
    "Elements sent at which pairs cost as much as the dense ring",
    unit="%",
)

# %% [markdown] tags=["run"]
# ## Run it: one gradient, twelve ways
#
# `pocket` is a small GPT of 420,480 parameters in 100 tensors. Each rank
# takes the gradient of its own eight pieces of text. A compressor is a
# *Reducer*: **gradients in, everybody's mean out.**


# %% tags=["setup"]
def gradient(comm, data):
    """One gradient of pocket, of this rank's own text."""
    model = gpt.gpt().to(comm.device)
    seed = torch.Generator().manual_seed(comm.rank)
    x, y = text.windows(data.cpu(), 64, 8, seed)
    gpt.loss(model(x.to(comm.device)), y.to(comm.device)).backward()
    return {name: p.grad for name, p in model.named_parameters()}


def flat(tensors):
    """All of them in one line."""
    return torch.cat([x.reshape(-1) for x in tensors.values()])


data = text.text().data

# %% [markdown] tags=["explain"]
# There are six ideas of what to send. **What can be summed on the way**
# travels round a ring; the rest goes from each rank to each other.
#
# | method | what travels | summed |
# |---|---|---|
# | half | 16 bits an element | yes |
# | 1-bit | a sign an element, two means a column | no |
# | TernGrad, QSGD | elements rounded at random, right on average | no |
# | top-k | the largest, each with its index | no |
# | coarse | chunks, the largest over all ranks | yes |
# | PowerSGD, GradZip | a matrix as two thin factors | yes |

# %% [markdown] tags=["run"]
# Five of the twelve *remember*: what was not sent is added to the next
# gradient. That is **error feedback**, and it wraps any reducer.

# %% tags=["setup"]
methods = {
    "half": Half,
    "1-bit": OneBit,
    "1-bit, kept": lambda: ErrorFeedback(OneBit()),
    "TernGrad": TernGrad,
    "QSGD, 1 level": lambda: QSGD(levels=1),
    "QSGD, 7 levels": lambda: QSGD(levels=7, code=Packed()),
    "top-k 1 %": lambda: TopK(0.01),
    "top-k 1 %, kept": lambda: ErrorFeedback(TopK(0.01)),
    "coarse, kept": lambda: ErrorFeedback(Coarse(0.1, 4096)),
    "PowerSGD": lambda: PowerSGD(rank=2),
    "PowerSGD, kept": lambda: ErrorFeedback(PowerSGD(rank=2)),
    "GradZip, kept": lambda: ErrorFeedback(GradZip(rank=2)),
}


# %% [markdown] tags=["run"]
# Each method gets the same gradient four times. Its error is that of
# the *sum* of what it gave, as a part of the exact sum: **what is only
# late is no error.** Bytes are counted where they leave the rank.


# %% tags=["setup"]
def tried(comm, reducer, grads, exact, steps=4):
    """What a step sends, and the error of the sum of all steps."""
    total = torch.zeros_like(exact)
    for k in range(steps):
        total += flat(reducer.reduce(grads, comm).mean)
        if k == 0:  # then the ranks also agree what they bring
            before = comm.traffic.bytes
    sent = (comm.traffic.bytes - before) / (steps - 1)
    error = (total / steps - exact).norm() / exact.norm()
    return round(sent), float(error)


# %% [markdown] tags=["run"]
# On four real processes, which start first; some 10 s in all.

# %% tags=["run"]
# %%torchrun -n 4 --in gradient,data,flat,methods,tried --out found,over
grads, over = gradient(comm, data), comm.backend
mean = lt.collectives.Mean()
exact = flat(mean.reduce(grads, comm).mean)
found = {"exact": tried(comm, mean, grads, exact, steps=2)}
found |= {
    name: tried(comm, make(), grads, exact)
    for name, make in methods.items()
}
print(f"the exact mean sends {found['exact'][0]:,} bytes")

# %% [markdown] tags=["see"]
# ## See it: error against bytes
#
# Both axes are logarithmic. Filled marks remember. **Look at the three
# pairs first**: B and C, G and H, J and K send the same bytes, without
# and with a memory. An error of 1 means: nothing was learned. A is far
# below the others, and stands on the edge with its number. The dotted
# line is the *frontier*: nobody is better than those on it in both.

# %% tags=["see"]
points = {
    name: Point(*pair, name.endswith("kept"))
    for name, pair in found[0].items()
}
dense = points.pop("exact").nbytes
show(
    compression(
        points,
        dense,
        title="A memory costs no byte, and lowers the error",
        under=f"4 steps of one gradient, 4 ranks over {over[0]}",
        least=0.08,
    )
)

# %% [markdown] tags=["explain"]
# *Myth: unbiased is best.* QSGD with one level is right on average. One
# draw of it holds **more noise than gradient**, and after 16 draws (4
# steps, 4 ranks) E still errs more than G, which is never right.
#
# *Myth: 1 % sent is 100 times faster.* Look where G and H stand: an
# index doubles each element, and three others get it: **one
# twenty-fifth** of the dense ring.

# %% [markdown] tags=["see"]
# Counted bytes of five of the methods, each against its law. **If they
# differ by one byte, the cell fails.**

# %% tags=["see"]
shapes = [p.shape for p in gpt.gpt().parameters()]
laws = {
    "half": lossy.half.law_bytes(4, 420_480, rank=0),
    "1-bit": lossy.one_bit.law_bytes(4, shapes, itemsize=4),
    "TernGrad": lossy.terngrad.law_bytes(4, 100, 420_480, itemsize=4),
    "top-k 1 %": lossy.top_k.law_bytes(4, 4_205, itemsize=4),
    "PowerSGD": lossy.power_sgd.law_bytes(
        4, shapes, 2, itemsize=4, rank=0
    ),
}
rows = {n: Three(law, None, found[0][n][0]) for n, law in laws.items()}
assert all(row.agree() for row in rows.values())
title = "Five methods, five laws, equal to the byte"
under = f"one step, measured on 4 processes over {over[0]}"
show(witnesses(rows, title=title, under=under))

# %% tags=["reveal"]
pairs = lossy.top_k.law_bytes(4, 420_480, itemsize=4)  # a density of 1
reveal(
    "32.break_even",
    100 * dense / pairs,
    why="a pair is twice an element, and goes to p - 1 ranks, where a"
    " ring sends 2 (p - 1) / p: the density is 1 / p.",
    usual='50 ("a pair is two numbers"): true of two ranks.',
    wrong=(50,),
)

# %% [markdown] tags=["breath"]
# **Where are you?** You know what each method sends and what it loses of
# one gradient. A memory helps much. Next: why, and whether it is honest.

# %% [markdown] tags=["predict"]
# ## Why a memory helps
#
# The gradient is (3, 1), step after step. 1-bit sends a sign for each
# element, and one size for all that share it: their mean, 2. So (2, 2)
# arrives, where (3, 1) was due. **With error feedback, how much of the
# second element has arrived after ten steps?** 10 are due.

# %% tags=["predict"]
predict(
    "32.arrived",
    "What has arrived of the second element of (3, 1) in ten steps",
    unit="",
)


# %% tags=["run"]
def sent_in(comm, reducer, gradient, steps):
    """What is sent of the same gradient, a row a step."""
    x = {"w": torch.tensor(gradient)}
    sent = [reducer.reduce(x, comm).sent["w"] for _ in range(steps)]
    return torch.stack(sent)


def both(reducer, *what):
    """Those of one rank, without and with a memory."""
    ways = reducer, ErrorFeedback(reducer)
    return [
        launch(sent_in, 1, w, *what, backend="threads")[0]
        for w in ways
    ]


ten = [way.sum(0).tolist() for way in both(OneBit(), [3.0, 1.0], 10)]
print(f"without a memory {ten[0]}, with one {ten[1]}")

# %% tags=["reveal"]
reveal(
    "32.arrived",
    ten[1][1],
    why="(2, 2) and (2, 2) leave (2, -2) in the memory; the third time"
    " that makes (5, -1), which has two signs, and arrives as it is.",
    usual='20 ("2 a step"): so it is without a memory.',
    wrong=(20,),
)

# %% [markdown] tags=["run"]
# Worse off is who sends the largest element alone, *top-1*. The gradient
# is (4, 3). **Say first:** in 14 steps, how often is the 3 sent?

# %% tags=["run"]
often = [
    w.ne(0).sum(0).tolist() for w in both(TopK(0.5), [4.0, 3.0], 14)
]
print(f"without a memory {often[0]}, with one {often[1]}")

# %% [markdown] tags=["explain"]
# Without a memory the second element is **never** sent, so it is never
# learned, however long you train. With one, what waits grows by 3 a step
# and is soon larger than 4:
#
# ```
# step  gradient   waits    sum      sent     keeps
#  0    (4, 3)    (0, 0)   (4, 3)   (4, 0)   (0, 3)
#  1    (4, 3)    (0, 3)   (4, 6)   (0, 6)   (4, 0)
#  2    (4, 3)    (4, 0)   (8, 3)   (8, 0)   (0, 3)
# ```
#
# > **Law.** All that was sent, and what waits at the end, is the sum of
# > all gradients: Σ sent + memory = Σ gradient, on each rank.
#
# On four ranks, in float64, five steps with other numbers each time.
# **Say which badge of [lab 00](00_start_here.ipynb) it will be.**

# %% tags=["run"]
# %%torchrun --in ErrorFeedback,TopK --out sent_and_kept,handed,wired
reducer, sent_and_kept, handed = ErrorFeedback(TopK(0.01)), 0, 0
count = 0
draw = torch.Generator().manual_seed(rank)
for k in range(5):
    x = torch.randn(10_000, generator=draw, dtype=torch.float64)
    x = x.to(comm.device)
    sent = reducer.reduce({"w": x}, comm).sent["w"]
    sent_and_kept, handed = sent_and_kept + sent, handed + x
    count += sent.count_nonzero().item()
    if k == 0:  # where ranks also agree what they bring
        before = comm.traffic.copy()
sent_and_kept += reducer.residual("w")
wired = comm.traffic - before
print(f"handed over {5 * x.numel():,} numbers, sent {count:,}")

# %% tags=["see"]
why = "sums in another order"
badge = verify(sent_and_kept, handed, because=why, after="5 steps")

# %% [markdown] tags=["explain"]
# *Myth: PowerSGD approximates each worker's gradient.* PowerSGD
# multiplies each M by one thin Q, the same on all ranks: P = M Q. That is
# linear in M, so the mean of the P is the P of the mean: it approximates
# **their mean**. Four ranks with four matrices, against one that has
# their mean:


# %% tags=["run"]
def factors(comm, matrices):
    """What PowerSGD makes of this rank's matrix."""
    x = matrices[comm.rank % len(matrices)]
    return PowerSGD(rank=2).reduce({"w": x}, comm).mean["w"]


draw = torch.Generator().manual_seed(0)
four = torch.randn(4, 64, 96, generator=draw, dtype=torch.float64)
ours = launch(factors, 4, list(four), backend="threads")
alone = launch(factors, 1, [four.mean(0)], backend="threads")
same = verify(ours, alone * 4, because="the mean comes first there")

# %% [markdown] tags=["breath"]
# **Where are you?** What waits is not lost, and that is a law you have
# checked. Next: does it *learn*, and how long does that take?

# %% [markdown] tags=["predict"]
# ## Does it learn?
#
# Back to the wire of 100 Mbit/s and 1 ms (the *kitchen*). A dense step
# of `pocket` takes 40 ms + 6 rounds + 2.5 MB, 247.8 ms. **How long is a
# step that sends 1 % as pairs?** Each rank sends three messages.

# %% tags=["predict"]
predict("32.step", "A step with top-k 1 % on that wire", unit="ms")


# %% tags=["run"]
def step_ms(nbytes, rounds, compute_ms=40, wire=KITCHEN):
    """One step on this wire, without the compressor's own time."""
    wire_s = nbytes / wire.bytes_per_s + rounds * wire.latency_s
    return compute_ms + 1000 * wire_s


exactly = step_ms(dense, rounds=6)
steps_ms = {
    "top-k 1 %": step_ms(found[0]["top-k 1 %"][0], rounds=3),
    "PowerSGD": step_ms(found[0]["PowerSGD"][0], rounds=12),
}
print(f"dense {exactly:.1f} ms, PowerSGD", end=" ")
print(f"{steps_ms['PowerSGD']:.1f} ms")

# %% tags=["reveal"]
reveal(
    "32.step",
    round(steps_ms["top-k 1 %"], 1),
    why="40 ms + 3 x 1 ms + 100,920 bytes over 12.5 MB/s.",
    usual='42.1 ("a hundredth of 208 ms"): pairs are twice as long,'
    " go to three ranks, and latency stays.",
    wrong=(42.1,),
)

# %% [markdown] tags=["run"]
# A net that names handwritten digits, on four ranks, 100 steps of plain
# SGD, the weights the same everywhere. `then`: another reducer for the
# second half, which is needed later.


# %% tags=["setup"]
net_loss = torch.nn.functional.cross_entropy
learn, held = digits.digits()


def batch(comm, k):
    """This rank's samples in step k."""
    i = ((torch.arange(16) + 16 * k) * 4 + comm.rank) % 1536
    return learn.x[i].to(comm.device), learn.y[i].to(comm.device)


# %% tags=["setup"]
def now(comm, model, reducer, grads):
    """The loss held out, and the norm of what waits on this rank."""
    waits = [torch.zeros(1)]
    if isinstance(reducer, ErrorFeedback):
        waits = [reducer.residual(name).reshape(-1) for name in grads]
    x, y = (part.to(comm.device) for part in held)
    return net_loss(model(x), y).item(), torch.cat(waits).norm().item()


# %% tags=["setup"]
def trained(comm, reducer, steps=100, rate=0.1, m=0.0, then=None):
    """In each step, on rank 0: the loss held out, and what waits."""
    model, rows, v = chain.chain().to(comm.device), [], {}
    for k in range(steps):
        reducer = then if then and 2 * k == steps else reducer
        x, y = batch(comm, k)
        net_loss(model(x), y).backward()
        grads = {n: p.grad for n, p in model.named_parameters()}
        mean = reducer.reduce(grads, comm).mean
        for n, p in model.named_parameters():
            v[n] = m * v.get(n, 0) + mean[n]
            p.data, p.grad = p.data - rate * v[n], None
        if comm.rank == 0:
            rows.append(now(comm, model, reducer, grads))
    return rows


# %% [markdown] tags=["run"]
# Five ways to reduce, on the four processes, and eight steps of a sixth
# for later. It takes some 6 s.

# %% tags=["setup"]
names = (
    "top-k 1 %",
    "top-k 1 %, kept",
    "1-bit, kept",
    "PowerSGD, kept",
)
tries = {"dense": Mean, **{name: methods[name] for name in names}}


def sixth():
    """QSGD of one level, with a memory."""
    return ErrorFeedback(QSGD(levels=1, code=Packed()))


# %% tags=["run"]
# %%torchrun --in trained,tries,sixth --out runs,cost,loud
runs, cost = {}, {}
for name, make in tries.items():
    before = comm.traffic.bytes
    runs[name] = trained(comm, make())
    cost[name] = (comm.traffic.bytes - before) / 100
    if rank == 0:
        print(f"{name}: {cost[name]:,.0f} bytes a step from rank 0")
loud = trained(comm, sixth(), steps=8)

# %% [markdown] tags=["see"]
# The net is small, so its clock is, too: 5 ms of computing a step, and
# its own bytes on the kitchen's wire, by law. **Look for two things**:
# which line ends first (its steps are short), and which one comes down
# last. *Why does dense jump?* A step of 0.1 is close to the bound for
# this net; with 0.05 the jumps are less than half as high. PowerSGD is
# near to dense. 1-bit and top-k send less of a gradient at once, and so
# take shorter steps.


# %% tags=["see"]
def on(wire):
    """The losses, against the seconds that the steps take there."""
    lines, rounds = {}, dict(zip(tries, (6, 3, 3, 3, 12)))
    for name, rows in runs[0].items():
        each_s = step_ms(cost[0][name], rounds[name], 5, wire) / 1000
        some = [(k * each_s, loss) for k, (loss, _) in enumerate(rows)]
        lines[name] = some[::5]
    return lines


axes = {"x": "emulated seconds", "y": "loss, held out", "exact": False}
under = "emulated: 5 ms a step and the kitchen's wire, 4 ranks"
title = "On a slow wire top-k and 1-bit with a memory learn first"
show(courses(on(KITCHEN), title=title, under=under, **axes))

# %% [markdown] tags=["see"]
# The same runs on a wire a hundred times as fast, the *rack*. **All lines
# end at almost the same time now**: what is left is how much a step
# learns. And the time that a compressor takes is not counted yet.

# %% tags=["see"]
under = "emulated: 5 ms a step and the rack's wire, 4 ranks"
title = "On a fast wire a step's time hardly depends on its bytes"
show(courses(on(RACK), title=title, under=under, **axes))

# %% [markdown] tags=["see"]
# Is what waits bounded, or does it grow for ever? Both axes are
# logarithmic. **Look which line never levels off**, in its eight steps:
# the sixth, QSGD of one level, which without a memory is right on
# average.

# %% tags=["see"]
lines = {
    name: [(k + 1, waits) for k, (_, waits) in enumerate(rows)]
    for name, rows in [
        *runs[0].items(),
        ("QSGD, 1 level, kept", loud[0]),
    ]
    if name
    in ("top-k 1 %, kept", "1-bit, kept", "QSGD, 1 level, kept")
}
axes = {"x": "step", "y": "norm of what waits", "exact": False}
axes |= {"log_x": True, "log_y": True}
title = "Top-k and 1-bit: bounded. QSGD, 1 level: without end"
show(courses(lines, title=title, under="rank 0 of 4; digits", **axes))

# %% [markdown] tags=["explain"]
# A memory helps where what is sent is **nearer to the gradient than
# nothing would be**: then of each gradient less than all is left over,
# and what waits stays within a bound. Top-k and 1-bit are so. A draw of
# QSGD with one level is noise several times as long as the gradient;
# that noise waits, is quantized with more noise, and so on.
#
# So what is unbiased needs no memory, and what is biased needs one.

# %% [markdown] tags=["breath"]
# **Where are you?** On a slow wire a tenth of the bytes learns as well,
# and sooner, as long as what is lost is remembered. Next: where not.

# %% [markdown] tags=["explore"]
# ## When it does not pay
#
# *Myth: compression is for large clusters.* It is for slow wires. All
# lines are laws, with the computing of a compressor left out. **Hunt:**
# raise the ranks at a density of 1 % until dense is faster than top-k.
# *And on which wire is a tensor of 1 MB hardly worth the trouble?*
# `columns` are those of PowerSGD's factors, `levels` those of QSGD, each
# element in as many bits as 2 levels + 1 numbers need. The diamonds
# stand where the title is true: at 100 MB.


# %% tags=["setup"]
def build(ranks, density, wire, columns, levels):
    """Seconds against bytes of the gradient, a line a method."""
    a, b = (ranks - 1) * wire.latency_s, (ranks - 1) / wire.bytes_per_s
    thin = sum(lossy.power_sgd.elements(shapes, columns)) / 420_480
    dense = {n: ring.law_seconds(ranks, n, wire) for n in sizes}
    pairs = {n: a + 2 * density * b * n for n in sizes}
    factors = {n: 4 * a + 2 / ranks * thin * b * n for n in sizes}
    bits = (2 * levels).bit_length()
    steps = {n: a + bits / 32 * b * n for n in sizes}
    times = pairs[10**8] / dense[10**8]
    title = f"{ranks} ranks, {density:.1%}: top-k takes"
    title += f" {times:.3g} x dense's time"
    lines = {"dense": dense, "top-k": pairs, "PowerSGD": factors}
    lines["QSGD"] = steps
    return curves(lines, title=title, under=f"law; {wire}", at=10**8)


# %% tags=["explore"]
sizes = [10**k for k in range(4, 10)]
place = {"ranks": 128, "density": 0.01, "columns": 2, "levels": 7}
wires = {"kitchen": KITCHEN, "office": OFFICE, "rack": RACK}
several = {"ranks": [4, 16, 64, 128], "density": [0.001, 0.01, 0.1]}
several |= {"columns": [1, 2, 4, 8], "levels": [1, 7, 127]}
explore(build, place, **several, wire=wires)

# %% tags=["explain"]
fast = step_ms(dense, rounds=6, wire=RACK)
print(f"a dense step of pocket on the rack: {fast:.1f} ms", end=", ")
print(f"of which the wire has {fast - 40:.1f}")

# %% [markdown] tags=["explain"]
# With 128 ranks each of them sends its pairs 127 times: 1.28 times what
# the ring sends. So compression is not your choice
#
# - where dense communication **already hides** behind the backward;
# - on **one host**, where the compressor takes longer than the copy;
# - under optimizers that need **true norms** of each layer;
# - on a fast wire: on the *rack* all that could be won is what the wire
#   has, before a compressor has done anything.

# %% [markdown] tags=["breath"]
# **Where are you?** You can say what a method sends, what it loses, and
# where it stops paying. Next: two ways to get it wrong without an error.

# %% [markdown] tags=["break"]
# ## Break it
#
# *Switch the memory off half-way.* Top-k of 0.1 %, 80 steps; in one of
# two runs the memory is gone from step 40 on. **Nothing raises.** Some
# 6 s, with the next mistake.
#
# *Momentum twice.* Deep gradient compression keeps momentum on the rank,
# so that what waits gathers it. Somebody leaves the optimizer's own
# momentum on. Chance is a loss of ln 10, 2.3.


# %% tags=["break"]
def dgc():
    """Momentum that waits with what was not sent."""
    return MomentumCorrection(TopK(0.01), momentum=0.9)


# %% tags=["break"]
# %%torchrun --in trained,dgc,TopK,ErrorFeedback --out broken
few, broken = TopK(0.001), {}
memory = ErrorFeedback(few)
broken["memory kept"] = trained(comm, ErrorFeedback(few), steps=80)
broken["memory off"] = trained(comm, memory, steps=80, then=few)
how = {"steps": 80, "rate": 0.05}
broken["momentum once"] = trained(comm, dgc(), **how)
broken["momentum twice"] = trained(comm, dgc(), **how, m=0.9)
if rank == 0:
    kept, off, once, twice = (r[-1][0] for r in broken.values())
    print(f"without its memory it ends above: {off > kept}")
    print(f"twice ends above once: {twice > once}")
    print(f"twice ends at chance: {twice > 2.2}")

# %% [markdown] tags=["break"]
# **Look at step 40**, where one line becomes two, and at the line that
# swings and then lies still.

# %% tags=["break"]
lines = {
    name: [(k + 1, loss) for k, (loss, _) in enumerate(rows)][::5]
    for name, rows in broken[0].items()
}
title = "Memory off: the loss flattens. Momentum twice: no learning"
axes = {"x": "step", "y": "loss, held out", "between": (0, 3)}
under = "memory: top-k 0.1 %, off from step 40; momentum: top-k 1 %"
show(courses(lines, title=title, under=under, **axes, exact=False))

# %% [markdown] tags=["break"]
# *One rank has an inf.* Half precision overflows on rank 2. A compressor
# may not hide that, and a memory may not keep it: **everybody's mean
# says so, and the step can be skipped everywhere.**

# %% tags=["break"]
# %%torchrun --in ErrorFeedback,TopK
x = torch.tensor([1.0, 2, 3, 4], device=comm.device)
reducer = ErrorFeedback(TopK(0.25))
reducer.reduce({"w": x}, comm)
waits = reducer.residual("w").clone()
bad = x if rank != 2 else x * float("inf")
mean = reducer.reduce({"w": bad}, comm).mean["w"]
kept = torch.equal(reducer.residual("w"), waits)
print(f"finite: {bool(mean.isfinite().all())}, memory kept: {kept}")

# %% [markdown] tags=["yours"]
# ## Yours: a memory
#
# Write one step of error feedback. `grads` holds a tensor a name;
# `send(x)` sends such a dict and gives what it became on the wire;
# `memory` is a dict of yours, empty at first, the same in every step.
# Gradients may come in 16 bits; what waits is small, and needs 32.
#
# Stuck? `from lt_core.teaching import hint`, then
# `hint("32.feedback")` in a cell of your own: one hint a call.


# %% tags=["yours"]
def feedback(memory, grads, send):
    """What was sent; what was not waits in memory."""
    ### BEGIN SOLUTION
    x = {}
    for name, g in grads.items():
        x[name] = g + memory.get(name, torch.zeros(g.shape))
    sent = send(x)
    for name in x:
        memory[name] = x[name] - sent[name]
    return sent
    ### END SOLUTION


# %% tags=["yours"]
check("32.feedback", feedback, launch=magics.launch)

# %% [markdown] tags=["yours"]
# **Top-k over ranks.** Each rank sends its k largest elements, by size,
# to all others, and everyone adds up what came:
#
# ```
# rank 0   (1, -4) (3, 3)       sum    (1, -4) (3, 5)
# rank 1   (3, 2)               mean   (1, -2) (3, 2.5)
# ```
#
# Who did not send an index has sent zero. `comm.exchange(sends,
# receives)` takes lists of (tensor, peer).


# %% tags=["yours"]
def top_k_mean(comm, x, k):
    """Like x: the mean over ranks of each one's k largest."""
    ### BEGIN SOLUTION
    where = x.abs().topk(k).indices
    mine, total = torch.stack([where.double(), x[where]]), x * 0
    others = [r for r in range(comm.size) if r != comm.rank]
    came = [torch.empty_like(mine) for _ in others]
    sends = [(mine, r) for r in others]
    comm.exchange(sends, list(zip(came, others)))
    for index, value in (mine, *came):
        total.index_add_(0, index.long(), value)
    return total / comm.size
    ### END SOLUTION


# %% tags=["yours"]
check("32.top_k", top_k_mean, launch=magics.launch)

# %% [markdown] tags=["yours"]
# **PowerSGD.** The gradient `m` is a matrix. Multiply it by a thin `q`;
# sum the product over ranks; make its columns orthonormal, which is `p`;
# multiply `m.T` by `p`, and take the mean over ranks: the next `q`. What
# you return is p qᵀ, which stands for everybody's mean.
#
# The first `q` is random, and the *same on all ranks*; later ones begin
# with the last. `memory` is a dict of yours, empty at first.
# `comm.all_reduce(x)` sums in place, `torch.linalg.qr(x).Q` has
# orthonormal columns.


# %% tags=["yours"]
def low_rank_mean(comm, m, rank, memory):
    """Like m: the mean over ranks, by factors of rank columns."""
    ### BEGIN SOLUTION
    seed = torch.Generator().manual_seed(0)
    first = torch.randn(m.shape[1], rank, generator=seed).to(m)
    p = m @ memory.get("q", first)
    comm.all_reduce(p)
    p = torch.linalg.qr(p).Q
    q = m.T @ p
    comm.all_reduce(q)
    memory["q"] = q / comm.size
    return p @ memory["q"].T
    ### END SOLUTION


# %% tags=["yours"]
check("32.power_sgd", low_rank_mean, launch=magics.launch)

# %% [markdown] tags=["breath"]
# **Where are you?** You have written the three parts of a compressor: a
# memory, a sum of what cannot be summed, and one that can. Last, choose.

# %% [markdown] tags=["yours"]
# **Pick one.** Name the fastest way to send a gradient of `pocket`.
# `seconds[name]` is what each computes beside the wire.
#
# | name | rounds | bytes a rank sends |
# |---|---:|---:|
# | "dense" | 2 (p − 1) | 2 (p − 1) / p × 4 × 420,480 |
# | "top-k" | p − 1 | (p − 1) × 8 × 4,205 |
# | "PowerSGD" | 4 (p − 1) | 2 (p − 1) / p × 4 × 24,064 |


# %% tags=["yours"]
def pick(p, wire, seconds):
    """ "dense", "top-k" or "PowerSGD": the fastest."""
    ### BEGIN SOLUTION
    share, a, b = 2 * (p - 1) / p, wire.latency_s, wire.bytes_per_s
    times = {
        "dense": 2 * (p - 1) * a + share * 4 * 420_480 / b,
        "top-k": (p - 1) * (a + 8 * 4_205 / b),
        "PowerSGD": 4 * (p - 1) * a + share * 4 * 24_064 / b,
    }
    return min(times, key=lambda name: times[name] + seconds[name])
    ### END SOLUTION


# %% tags=["yours"]
check("32.pick", pick, launch=magics.launch)

# %% [markdown] tags=["papers"]
# **What was reported.** Each figure is its source's own, of its machines.
#
# | who | what | figure |
# |---|---|---|
# | Seide and others 2014 | 1-bit, speech | up to 10 x (reported) |
# | Alistarh and others 2017 | QSGD, ResNet-152 | 1.8 x (reported) |
# | Lin and others 2018 | DGC, bytes | 270 to 600 x (reported) |
# | Vogels and others 2019 | PowerSGD, ResNet-18 | −55 % time (reported) |
# | Sun and others 2019 | coarse, AlexNet | 1.5 min (title) |
#
# GradZip (Cho and others 2019) was not read again: what runs here under
# its name is our own reading. In Chinese texts 分裂, *splitting*, stands
# for sparsification.

# %% [markdown] tags=["out"]
# ## Take it with you
#
# PowerSGD with a memory, whole: two thin products, two sums, and what
# the product lacks waits. Bytes are counted, and the error is that of
# the mean of 100 steps, which is 0.97 after one. `--save` writes the cell
# as a script.

# %% tags=["out"]
# %%torchrun --save compress.py --out said
x = torch.randn(64, 96, generator=torch.Generator().manual_seed(rank))
x, q = x.to(comm.device), torch.eye(96, 2, device=comm.device)
comm.all_reduce(exact := x.clone())
memory, total, before = 0, 0, comm.traffic.bytes
for _ in range(100):
    m = x + memory
    comm.all_reduce(p := m @ q)
    p = torch.linalg.qr(p).Q
    comm.all_reduce(q := m.T @ p)
    came = p @ (q / comm.size).T
    memory, total = m - came, total + came
sent, mean = comm.traffic.bytes - before, exact / comm.size
error = (total / 100 - mean).norm() / mean.norm()
print(said := f"sent {sent:,} bytes, error {error:.3f}")

# %% [markdown] tags=["out"]
# The script on four new processes, which takes some 5 s: as many bytes,
# and the same error? `labs/scripts/compress.py` trains a GPT so, with
# most of these methods: `--method power_sgd --rank 2 --wire kitchen`.

# %% tags=["out"]
printed = run_script("compress.py", 4)
assert printed == said
whole = 100 * ring.law_bytes(4, 64 * 96, itemsize=4, rank=0)
f"{printed[0]}; a dense ring sends {whole:,}"

# %% [markdown] tags=["breath"]
# ## The bill
#
# Compression takes **wire** off, and pays in compute, in memory (what
# waits is as large as the gradient), and in sameness: each step is
# another one, and only the sum of all is the same.
#
# This is the last lab that stands. Not yet done [lab 22](22_asynchrony.ipynb)?
# It starts ranks of its own. `%torchrun stop` in a cell ends these.

# %% tags=["breath"]
cost = {"traffic": wired, "steps": 4, "n_bytes": 8 * 10_000}
cost |= {"badge": badge, "of": "sent + kept, not of the training"}
bill("top-k 1 %, kept", lab="32", **cost, note="memory: n more")

# %% [markdown] tags=["teacher"]
# <details><summary>For teachers</summary>
#
# The class stalls at the first picture: let them find one pair of marks,
# open and filled, before anything else. Draw the table of (4, 3) on the
# board, and let two students be the memory and the wire.
#
# Two questions: "Which of these can be summed on the way, and why does
# that matter with a thousand ranks?" "What does the memory cost, and
# where would you rather not have it?" (On a device that is full.)
#
# In a 45-minute slot skip *When it does not pay* and the third exercise.
#
# </details>
