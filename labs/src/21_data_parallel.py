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
# # 21 - Data parallelism: what hides behind a backward
#
# You doubled the GPUs. Each computes half of the batch, so a step should
# take half as long. You measure, and training is 1.4 times as fast, not
# 2. **Where did 0.6 go?**
#
# *Builds on [lab 20](20_all_reduce.ipynb): a ring sends 2 n (p − 1) / p
# bytes in 2 (p − 1) rounds. Takes 60 minutes, 4 ranks, 40 s of
# machine time.*
#
# The next cell imports what the others use, and takes some 4 s.

# %% tags=["setup"]
from time import perf_counter, sleep

import torch

from lt_core import magics
from lt_core.base import Trace
from lt_core.base.cluster import KITCHEN, OFFICE, RACK
from lt_core.collectives import ring
from lt_core.comm import clocks, shaped
from lt_core.data_parallel import replicate as dp
from lt_core.engine import costs, simulate
from lt_core.models import chain, gpt
from lt_core.teaching import bill, check, predict, reveal
from lt_core.teaching import run_script, verify
from lt_core.views import Three, courses, curves, explore
from lt_core.views import gantt, show, witnesses

magics.load()

# %% [markdown] tags=["run"]
# ## Run it: one message a layer, at the end
#
# Every rank has the whole model and a part of the batch. After the
# backward pass all take the mean of their gradients, and make the same
# step. **Nothing else is data parallelism.** Here it is, on your own
# model, which is not touched:
#
# ```
# replica = dp.naive.replicate(model, comm)  # as rank 0's
# loss.backward()
# replica.sync()                          # mean in .grad
# optimizer.step()
# ```
#
# Inside, after one short message about who has which gradient, `sync` is
# a loop over the parameters: each gradient is summed over the ranks, and
# the sum is divided once.

# %% [markdown] tags=["run"]
# Two cores cannot show what four GPUs do, so the device is *emulated*:
# a block takes 5 ms forward and 10 ms backward, and waits so long. The
# gradients are real, and so are the messages, on a wire shaped as the
# office's (1 Gbit/s, 0.1 ms). A block has 302 x 302 weights. How long
# does a ring of four carry them?


# %% tags=["setup"]
class Device(torch.autograd.Function):
    """Busy for 5 ms on the way forward, 10 ms on the way back."""

    @staticmethod
    def forward(ctx, x, pace):
        sleep(0.005 * pace)
        ctx.pace = pace
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        sleep(0.010 * ctx.pace)
        return grad, None


# %% tags=["run"]
class Block(torch.nn.Linear):
    """A layer on the emulated device; pace: times as long."""

    def __init__(self, pace):
        super().__init__(302, 302, bias=False)
        self.pace = pace

    def forward(self, x):
        return Device.apply(super().forward(x), self.pace)


block_ms = 1000 * ring.law_seconds(4, 4 * 302 * 302, OFFICE)
print(f"a block's gradient on the wire, by law: {block_ms:.2f} ms")


# %% tags=["setup"]
def one_step(comm, way, tries=12, pace=1):
    """This rank's trace of the shortest step of some."""
    blocks = [Block(pace) for _ in range(8)]
    model, steps = torch.nn.Sequential(*blocks).to(comm.device), []
    trace = Trace("step", backend=comm.backend)
    replica = way(model, comm, trace)
    for _ in range(tries):
        trace.spans = []
        model.zero_grad()
        x = torch.ones(1, 302, device=comm.device)
        model(x).sum().backward()
        replica.sync()
        steps.append(Trace("step", trace.spans, backend=comm.backend))
    replica.close()
    return min(steps, key=Trace.makespan_s)


# %% [markdown] tags=["predict"]
# ## Predict it
#
# Forward 40 ms, backward 8 x 10 ms, eight messages of 5 ms. One after
# the other that is 160 ms. But the backward goes through the blocks from
# the last one to the first. So **the last block's gradient is ready
# first**: its message could travel while the other seven blocks are
# still at it.

# %% tags=["predict"]
predict(
    "21.overlapped",
    "A step whose messages leave as soon as they can",
    unit="ms",
)

# %% [markdown] tags=["run"]
# The ranks start and run both, which takes some 8 s: `naive`, with all
# messages after the backward, and `overlapped`, whose messages leave
# beside it. The shortest of twelve steps is kept.

# %% tags=["run"]
# %%torchrun -n 4 --in shaped,OFFICE,one_step,dp --out runs
office, each = shaped.shaped(comm, OFFICE), 4 * 302 * 302
ways = {
    "after": lambda m, c, t: dp.naive.replicate(m, c, trace=t),
    "beside": lambda m, c, t: dp.overlapped.replicate(
        m, c, bucket_bytes=each, trace=t
    ),
}
runs = {name: one_step(office, way) for name, way in ways.items()}
print("a step each way:", *runs)

# %% [markdown] tags=["see"]
# ## See it: the tail
#
# Rank 0's two lanes, *compute* and *out* (its wire), and below them the
# same step with messages beside the backward. A message is light blue:
# the legend calls it a *collective*, since all ranks take part. **Look at
# the right end of the lower wire**: one message ends when nothing is
# computed any more. It is the first block's, which is computed last, and
# has nothing left to hide behind. That is the *tail*.


# %% tags=["setup"]
def alone(name):
    """Rank 0's spans of a run, under that name."""
    spans, backend = runs[0][name].spans, runs[0][name].backend
    return Trace(f"messages {name}", spans, backend=backend)


def behind(trace):
    """How many messages end when nothing is computed any more."""
    busy = [s.end_s for s in trace.spans if s.stream == "compute"]
    out = [s.end_s for s in trace.spans if s.stream == "out"]
    return sum(end_s > max(busy) for end_s in out)


# %% tags=["see"]
title = "Seven messages hide, the last one cannot"
if behind(alone("beside")) != 1:
    title = "Disturbed by a busy machine: run both steps again"
under = "emulated device, 4 ranks, shaped wire: office"
look = {"title": title, "under": under}
chart = gantt(alone("after"), alone("beside"), **look)
tail = {"text": "the tail", "xanchor": "left", "showarrow": False}
tail["x"] = 1000 * alone("beside").makespan_s()  # where it ends, in ms
tail["xshift"] = 4  # pixels: not upon its edge
tail["y"] = chart.figure.layout.yaxis.tickvals[-1]  # in the last lane
chart.figure.add_annotation(tail)
show(chart)

# %% [markdown] tags=["see"]
# The three witnesses of both steps, on the emulated device and its shaped
# wire. For the simulation a step is a schedule: blocks to compute, and a
# ring for each. The measured bars are longer, since **a sleeping process
# wakes up late**, and one message more asks who has which gradients.

# %% tags=["see"]
back, wire = [0.010] * 8, [ring.law_seconds(4, 4 * 302**2, OFFICE)] * 8
alpha, beta = OFFICE.latency_s, 302**2 / OFFICE.bytes_per_s  # a chunk
priced = costs.Unit({"F": 0.005, "B": 0.010}, alpha, beta)
laws = dp.naive.law_seconds, dp.overlapped.law_seconds
plans = dp.step.after_backward(8, 4), dp.step.beside_backward(8, 4)
seconds = {}
for name, law, plan in zip(("after", "beside"), laws, plans):
    said = simulate.simulate(plan, priced).makespan_s()
    took = alone(name).makespan_s()
    seconds[name] = Three(law(0.040, back, wire), said, took)
by_law = [f"{1000 * one.law:.0f}" for one in seconds.values()]
title = "Beside the backward: {1} ms by law, not {0}".format(*by_law)
told = "emulated device, shaped wire: office; "
told += "measured on 4 processes over " + runs[0]["after"].backend
show(witnesses(seconds, title=title, under=told, unit="s"))

# %% tags=["reveal"]
reveal(
    "21.overlapped",
    round(1000 * seconds["beside"].law),
    why="40 forward + 80 backward + the last message: 5 ms that"
    " nothing hides.",
    usual='120 ("overlap hides everything"): who hides the last one?',
    wrong=(120,),
)

# %% [markdown] tags=["see"]
# How much of the wire was hidden? The trace says it: the part of all
# messages during which this rank still computed. It may be more than by
# law: sending a message off counts as computing, so the last one is on
# its way a moment before the backward ends.


# %% tags=["see"]
def hidden(trace):
    """The share of the wire's seconds that lie beside compute."""
    wire = [s for s in trace.spans if s.stream == "out"]
    busy = [s for s in trace.spans if s.stream == "compute"]
    over = max(s.end_s for s in busy)
    beside = [max(0.0, min(s.end_s, over) - s.start_s) for s in wire]
    return sum(beside) / sum(s.end_s - s.start_s for s in wire)


for name in seconds:
    print(f"messages {name}: {hidden(alone(name)):.0%} hidden")
print(f"by law, beside: {7 / 8:.0%}")

# %% [markdown] tags=["breath"]
# **Where are you?** With its messages beside the backward a step pays the
# tail alone: what is sent when nothing is computed any more. Next: why,
# as a law, and what a slower wire does to it.

# %% [markdown] tags=["explain"]
# ## Why
#
# What travels in one message is a *bucket*; so far a block's gradient.
# Bucket 0 is the last block's, which is ready first. Bucket *k* cannot
# leave before the backward has come to it, nor before the buckets ahead
# of it are through.
#
# > **Law.** step = forward + the largest, over all *k*, of
# > **backward of buckets 0 to k + wire of buckets k to the last.**
#
# With a fast wire the last *k* wins: all of the backward, one message.
# With a slow one *k* = 0 wins: one block of backward, then the wire is
# busy to the end.

# %% tags=["predict"]
predict(
    "21.slow_wire",
    "The same step on a wire three times slower: 15 ms a message",
    unit="ms",
)

# %% tags=["reveal"]
slow = dp.overlapped.law_seconds(40, [10] * 8, [15] * 8)
share = 1 - (slow - 120) / (8 * 15)
print(f"hidden: {share:.0%} of the wire; with 5 ms it was 88%")
reveal(
    "21.slow_wire",
    slow,
    why="40 forward + 10 until the first message can leave + 8 x 15:"
    " now the messages queue, and the backward hides behind them.",
    usual='135 ("only the last message shows"): the other seven are'
    " not through by then.",
    wrong=(135,),
)

# %% [markdown] tags=["explain"]
# **There is your 1.4.** A step computes 40 + 80 = 120 ms for its half of
# the batch; one GPU alone would compute 240 for all of it. Two GPUs on
# the slow wire take 170, and 240 / 170 is 1.41. The missing 0.6 are 50 ms
# of messages with nothing left to hide behind. All at the end, on the
# same wire, they would be 120 ms, and two GPUs no faster than one:
# 240 / 240.

# %% [markdown] tags=["breath"]
# **Where are you?** A step pays what does not fit behind the backward:
# on a fast wire one message of 5 ms, on a slow one 50 ms of the 120 that
# all eight take. Next: how many messages there should be.

# %% [markdown] tags=["predict"]
# ## Buckets
#
# `pocket`, the GPT of this course, has 420,480 parameters in 100 tensors.
# A message a tensor is a ring a tensor: on the kitchen's wire (1 ms a
# message) 4 ranks pay 6 rounds for each.

# %% tags=["predict"]
predict(
    "21.latency",
    "pocket, kitchen, 4 ranks: waiting for 100 rings' rounds alone",
    unit="ms",
)

# %% tags=["run"]
sizes = [p.numel() for p in gpt.gpt().parameters()]
print(f"{sum(sizes):,} parameters in {len(sizes)} tensors")
rounds = dp.naive.law_messages(4, sizes, 0)
print(f"{rounds} messages, each 1 ms before its first byte")

# %% tags=["reveal"]
reveal(
    "21.latency",
    1000 * rounds * KITCHEN.latency_s,
    why="100 x 2 (4 - 1) x 1 ms; all in one bucket: 6 ms.",
    usual="100: one a tensor, but a ring of four has six rounds.",
    wrong=(100,),
)

# %% [markdown] tags=["see"]
# So put many tensors in one bucket? **Then the first gradient waits for
# the last one of its bucket**, and the tail grows. How large should a
# bucket be? First run it: parameters of `pocket`'s sizes, a backward
# emulated in 100 ms, and the kitchen's wire. This takes 5 s.


# %% tags=["setup"]
class Piece(torch.autograd.Function):
    """Nothing; on the way back a parameter's share of 100 ms."""

    @staticmethod
    def forward(ctx, x, p, share_s):
        ctx.shape, ctx.share_s = p.shape, share_s
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        if ctx.share_s > 1e-4:  # shorter sleeps are never on time
            sleep(ctx.share_s)
        return grad, torch.ones(ctx.shape, device=grad.device), None


# %% tags=["setup"]
def bucket_step(comm, sizes, nbytes):
    """Seconds from the backward's start to the last mean."""
    params = [torch.nn.Parameter(torch.zeros(n)) for n in sizes]
    model, took = torch.nn.ParameterList(params).to(comm.device), []
    replica = dp.overlapped.replicate(model, comm, bucket_bytes=nbytes)
    for _ in range(3):
        x = torch.zeros(1, requires_grad=True, device=comm.device)
        for p in params:
            x = Piece.apply(x, p, 0.100 * p.numel() / sum(sizes))
        comm.barrier()
        begun = perf_counter()
        x.sum().backward()
        replica.sync()
        took.append(perf_counter() - begun)
    return min(took)


# %% tags=["run"]
# %%torchrun --in KITCHEN,bucket_step,sizes --out ran
kitchen, ran = shaped.shaped(comm, KITCHEN), {}
for nbytes in (64_000, 256_000, 512_000, 2_048_000):
    ran[nbytes] = bucket_step(kitchen, sizes, nbytes)
print("measured", len(ran), "sizes of buckets")

# %% [markdown] tags=["see"]
# Lines are laws, dots are your runs on the kitchen's wire. **Look for the
# lowest point of the upper line**, a diamond, and on which side of it you
# would rather err. From 4 to 64 kB that line is flat: whatever you ask
# for, a bucket holds one matrix of `pocket` (16 to 66 kB) and the small
# tensors beside it. On the two faster wires all messages hide behind
# 100 ms of backward, and only one large bucket leaves a tail.


# %% tags=["setup"]
def step_s(nbytes, wire, ranks=4, backward_s=0.100):
    """Backward and what follows, by law, in buckets of nbytes."""
    cut = dp.buckets.bucket_elements(sizes, 4, nbytes)
    back = [backward_s * n / sum(cut) for n in cut]
    wires = [ring.law_seconds(ranks, 4 * n, wire) for n in cut]
    return dp.overlapped.law_seconds(0, back, wires)


choices = [1000 * 2**k for k in range(12)]

# %% tags=["see"]
lines = {
    wire.name: {n: step_s(n, wire) for n in choices}
    for wire in (KITCHEN, OFFICE, RACK)
}
best = min(choices, key=lines["kitchen"].get)
title = f"Not small, not large: in the kitchen {best // 1000} kB"
told = (
    "4 ranks, emulated backward of 100 ms; dots: shaped wire, kitchen"
)
dots = {"kitchen": {n: max(one[n] for one in ran) for n in ran[0]}}
look = {"title": title, "under": told, "x": "bytes of a bucket"}
look["y"] = "backward and what follows"
show(curves(lines, at={"kitchen": best}, dots=dots, **look))

# %% [markdown] tags=["explore"]
# **Hunt:** find a wire and a number of ranks for which one bucket with
# everything in it (1,682 kB) is the fastest, and some for which buckets
# of 2 kB are. *Raise the ranks alone: bytes hardly grow, rounds do.*


# %% tags=["setup"]
def build(ranks, wire, backward_ms):
    """The step by bucket, above the backward alone."""
    beside, after = {}, {}
    for n in choices:
        backward_s = backward_ms / 1000
        beside[n] = step_s(n, wire, ranks, backward_s)
        after[n] = backward_s
    best = min(choices, key=beside.get)
    title = f"Buckets of {best // 1000:,} kB are the fastest"
    if best > 4 * sum(sizes):
        title = "One bucket with all 1,682 kB is the fastest"
    under = f"pocket, {ranks} ranks, {wire}, {backward_ms} ms backward"
    both, x = {"step": beside, "backward": after}, "bytes of a bucket"
    at = {"step": best}
    return curves(both, title=title, under=under, at=at, x=x)


# %% tags=["explore"]
three = {"kitchen": KITCHEN, "office": OFFICE, "rack": RACK}
here = {"ranks": 64, "wire": OFFICE, "backward_ms": 30}
explore(
    build,
    here,
    ranks=[2, 4, 8, 64],
    wire=three,
    backward_ms=[10, 30, 100],
)

# %% [markdown] tags=["explain"]
# While the wire keeps up with the backward only the tail counts, and
# small buckets have the shortest. Once **rounds times latency** outgrow
# the backward, few large ones win.

# %% [markdown] tags=["breath"]
# **Where are you?** Latency wants few messages, the tail wants small
# ones, and a law says where they meet. Next: is it still the training
# that you asked for?

# %% [markdown] tags=["run"]
# ## Run it: the same training?
#
# Three steps of an MLP in double precision: four ranks with 32 samples
# each, and one process with all 128. **Which badge do you expect**, of
# [lab 00](00_start_here.ipynb)'s: ≡, ≈ or ≠?


# %% tags=["setup"]
def share(rank, size):
    """This rank's part of 128 samples."""
    x = torch.arange(128 * 64.0, dtype=torch.float64).sin()
    return x.view(128, 64)[rank::size]


# %% tags=["setup"]
def trained(comm, rank, size, device="cpu"):
    """An MLP after three steps on this rank's share."""
    x = share(rank, size).to(device)
    model = chain.chain(dtype=torch.float64, seed=rank).to(device)
    replica = dp.bucketed.replicate(model, comm) if comm else None
    before = comm.traffic.copy() if comm else None
    for _ in range(3):
        model.zero_grad()
        (model(x) - x[:, :10]).square().mean().backward()
        if replica:
            replica.sync()
        for p in model.parameters():
            p.data -= 0.1 * p.grad
    trained = {n: p.detach() for n, p in model.named_parameters()}
    return trained, comm.traffic - before if comm else None


# %% tags=["run"]
# %%torchrun --in trained,share --out models,sent
models, sent = trained(comm, rank, comm.size, comm.device)
print("three steps, from rank 0's weights:", len(models), "tensors")

# %% tags=["see"]
badge = verify(
    models,
    [trained(None, 0, 1)[0]] * 4,
    after="3 steps",
    because="sums in another order",
)
verify(models, after="3 steps")

# %% [markdown] tags=["explain"]
# **Data parallelism does not change the training.** The sum of 128
# gradients is taken in another order, so against one process it is the
# same but for rounding; across ranks it is the same to the last bit,
# since all hold the result of one sum.
#
# One condition: **equal shares.** A mean of means weighs ranks, not
# samples. Here rank 0 has three samples, and rank 1 has one.

# %% tags=["explain"]
x = torch.tensor([1.0, 2.0, 3.0, 10.0])
print("mean of all four:   ", x.mean().item())
means = x[:3].mean(), x[3:].mean()
print("mean of both means: ", sum(means).item() / 2)

# %% [markdown] tags=["explain"]
# With unequal shares let the loss be a *sum* over a rank's samples and
# say how many there were: `replica.sync(samples=3)` on rank 0,
# `replica.sync(samples=1)` on rank 1. What `.grad` holds then is the mean
# over all four.

# %% [markdown] tags=["breath"]
# **Where are you?** You can price a step, choose buckets, and prove that
# it is the same training. The wire can take the missing 0.6. It is not
# the only one who can: next comes waiting.

# %% [markdown] tags=["run"]
# ## Who is late
#
# A step ends when the last rank has come. Make one sick: **rank 3's
# device takes ten times as long.** One step, of 1.2 s.

# %% tags=["run"]
# %%torchrun --in clocks --out sick
pace = 10 if rank == 3 else 1
mine = one_step(office, ways["after"], tries=1, pace=pace)
sick = clocks.gather_traces(comm, mine)
print(f"{pace} x 120 ms of computing")

# %% [markdown] tags=["see"]
# Look for who works, and who waits (dotted). Before a step's first
# message the ranks tell each other which gradients they have; there the
# three meet the fourth.

# %% tags=["see"]
title = "One sick rank: three wait for most of the step"
look = {"one_lane": True, "waiting": True}
show(gantt(sick[0], title=title, under=under, **look))
busy = sum(s.end_s - s.start_s for s in sick[0].spans)
waited = 4 * sick[0].makespan_s() - busy
print(f"waited: {waited:.1f} rank-seconds in one step")

# %% [markdown] tags=["explore"]
# That was one sick rank of four. And many healthy ones? Let each take 0.9
# to 1.1 of a second, at random: **how long do *N* wait for the slowest?**


# %% tags=["setup"]
def slowest(jitter, sick):
    """Mean of the largest of N times in 1 - jitter to 1 + jitter."""
    counts = [1, 2, 4, 8, 16, 32, 64, 256, 1000]
    least = 10.0 if sick else 0.0
    law = [
        (n, max(least, 1 + jitter * (n - 1) / (n + 1))) for n in counts
    ]
    more = law[-1][1] / law[6][1] - 1
    title = f"1,000 ranks: a step {more:.1%} longer than with 64"
    if sick:
        title = "One sick rank: a step takes 10 s, however many ranks"
    under = f"the slowest of N on average, jitter {jitter:.0%}, by law"
    look = {"x": "ranks", "y": "seconds of a step", "log_x": True}
    return courses({"step": law}, title=title, under=under, **look)


# %% tags=["explore"]
usual = {"jitter": 0.1, "sick": False}
explore(slowest, usual, jitter=[0.05, 0.1, 0.3], sick=bool)

# %% tags=["explain"]
for n in (2, 8, 64, 1000):
    mean_s = 1 + 0.1 * (n - 1) / (n + 1)
    print(f"the slowest of {n:5,}: {mean_s:.4f} s on average")

# %% [markdown] tags=["explain"]
# **Jitter saturates, sickness does not.** With a jitter of 10 % nobody
# takes more than 1.1 s, and of 64 ranks one comes near it in each step:
# a thousand wait hardly longer. But one rank that is ten times slower
# makes every step ten times longer, for all of them. Lab 22 asks what
# may be done about that.

# %% [markdown] tags=["break"]
# ## Break it
#
# *Everyone starts from weights of its own.* Somebody took the mean of
# gradients by hand and forgot that rank 0's weights should be
# everybody's. **Nothing raises, and the loss falls.** Compare the last
# column, which is a fingerprint of the weights: equal weights would have
# equal ones.

# %% tags=["break"]
# %%torchrun --in chain
model = chain.chain([4, 8, 1], seed=rank).to(comm.device)
x = (torch.arange(1.0, 9)[:, None] / 8).expand(8, 4).to(comm.device)
losses = []
for _ in range(4):
    model.zero_grad()
    loss = ((model(x) - 1) ** 2).mean()
    loss.backward()
    losses.append(loss.item())
    for p in model.parameters():
        comm.all_reduce(p.grad)
        p.data -= 0.02 * p.grad / comm.size
    mark = sum(p.double().sum() for p in model.parameters())
print(f"loss {losses[0]:.2f} to {losses[-1]:.2f}, weights {mark:.4f}")

# %% [markdown] tags=["break"]
# *A layer that rank 1 did not use.* Its gradient is None there, so rank 1
# sends one message less. The others wait for it. At once you are told
# **who waits in which all-reduce**, and that is all a hang ever tells:
# which parameter it was, you have to know.

# %% tags=["break", "raises-exception"]
# %%torchrun
how = {"requires_grad": True, "device": comm.device}
layers = [torch.ones(2, **how) for _ in range(3)]
used = layers[:2] if rank == 1 else layers
sum(layer.sum() for layer in used).backward()
for layer in layers:
    if layer.grad is not None:
        comm.all_reduce(layer.grad)

# %% [markdown] tags=["breath"]
# **Where are you?** Ranks that do not do the same thing drift apart
# without a word, or wait for ever. So a mean of gradients needs care
# where ranks differ. You write it now.

# %% [markdown] tags=["yours"]
# ## Yours: the mean, in buckets
#
# Make every `.grad` the mean over ranks: **one all-reduce a bucket** of
# at most `bucket_bytes` and one dtype; a larger parameter goes alone.
# Ranks may have used different layers:
#
# | parameter | rank 0 | rank 1 | after |
# |---|---|---|---|
# | used by both | 1 | 2 | 1.5 |
# | used by one | 1 | None | 0.5 |
# | used by none | None | None | None |
#
# So ask first: one short message; a 1 says "I have one". A tied
# parameter comes once, a frozen one not at all.
#
# Stuck? `from lt_core.teaching import hint`, then
# `hint("21.average")` in a cell of your own: one hint a call.


# %% tags=["yours"]
def average_gradients(model, comm, bucket_bytes):
    """Every .grad becomes the mean; None where nobody has one."""
    ### BEGIN SOLUTION
    params = list(model.parameters())[::-1]
    mine = [int(p.grad is not None) for p in params]
    used = torch.tensor(mine, device=comm.device)
    comm.all_reduce(used)
    filling, full = {}, []
    for p in (p for p, n in zip(params, used.tolist()) if n):
        bucket = filling.setdefault(p.dtype, [])
        held = sum(q.nbytes for q in bucket)
        if bucket and held + p.nbytes > bucket_bytes:
            full.append(bucket)
            bucket = filling[p.dtype] = []
        bucket.append(p)
    for bucket in [*full, *filling.values()]:
        grads = [
            torch.zeros_like(p) if p.grad is None else p.grad
            for p in bucket
        ]
        flat = torch.cat([grad.reshape(-1) for grad in grads])
        comm.all_reduce(flat)
        pieces = (flat / comm.size).split([p.numel() for p in bucket])
        for p, piece in zip(bucket, pieces):
            p.grad = piece.view(p.shape)
    ### END SOLUTION


# %% tags=["yours"]
check("21.average", average_gradients, launch=magics.launch)

# %% [markdown] tags=["yours"]
# **Beside the backward.** A hook of `p.register_post_accumulate_grad_hook`
# is called with *p* when its `.grad` is complete.
# `work = comm.start("all_reduce", x)` begins a sum, `work.wait()` ends it.
# Return `finish`, which is called after the backward.
#
# Ranks may finish their layers in different orders, and messages have no
# names: **they must leave in one order everywhere.**


# %% tags=["yours"]
def overlap(model, comm):
    """Hooks that begin the mean; finish() makes it complete."""
    ### BEGIN SOLUTION
    waiting, ready, begun = list(model.parameters())[::-1], set(), []

    def hook(p):
        ready.add(p)
        while waiting and waiting[0] in ready:
            first = waiting.pop(0)
            work = comm.start("all_reduce", first.grad)
            begun.append((first, work))

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)

    def finish():
        for p, work in begun:
            work.wait()
            p.grad /= comm.size

    return finish
    ### END SOLUTION


# %% tags=["yours"]
check("21.overlap", overlap)

# %% [markdown] tags=["yours"]
# **Decide.** Blocks of so many `elements` (floats of 4 bytes, as they are
# registered), a backward of `backward_s` seconds which each block shares
# by its size, *p* ranks, a wire: buckets of 40,000, 400,000 or 4,000,000
# bytes? All you need stands in this lab.


# %% tags=["yours"]
def pick(elements, backward_s, p, wire):
    """40_000, 400_000 or 4_000_000: the fastest."""
    ### BEGIN SOLUTION
    ends = {}
    for nbytes in (40_000, 400_000, 4_000_000):
        cut = dp.buckets.bucket_elements(elements, 4, nbytes)
        back = [backward_s * n / sum(cut) for n in cut]
        wires = [ring.law_seconds(p, 4 * n, wire) for n in cut]
        ends[nbytes] = dp.overlapped.law_seconds(0, back, wires)
    return min(ends, key=ends.get)
    ### END SOLUTION


# %% tags=["yours"]
check("21.pick", pick)

# %% [markdown] tags=["breath"]
# **Where are you?** The mean, the overlap and the choice are yours. What
# follows is when to leave them alone, and a script to take home.

# %% [markdown] tags=["explain"]
# ## When not
#
# - **The model does not fit**: every rank holds all of it, its gradients
#   and its optimizer's state. That wall is what labs 23 and 30 are for.
# - **Too little per rank**: halve the share of a rank, and its device
#   idles while the wire carries as much as before.
# - **On one host overlap gains less than on a wire**: memory and cores
#   carry the messages, and they are busy. A shaped wire showed you what a
#   real one does.

# %% [markdown] tags=["papers"]
# **What was reported.** Each figure is its source's own, of its machines.
#
# | who | what | figure |
# |---|---|---|
# | Li and others 2020 | buckets and hooks in PyTorch's DDP | 25 MB a bucket |
# | Goyal and others 2017 | 8 to 256 GPUs | about 90% scaling (reported) |

# %% [markdown] tags=["out"]
# ## Take it with you
#
# The whole of it in one cell, with no class of anybody's. `--save` writes
# it as a script. `labs/scripts/ddp.py` is the same with buckets, a GPT
# and text, and also takes a model of yours (`--model mine.py:make`).

# %% tags=["out"]
# %%torchrun --save ddp.py --out weights
torch.manual_seed(0)
model = torch.nn.Linear(4, 2).to(comm.device)
data = torch.arange(64.0, device=comm.device).view(16, 4) / 64
for _ in range(10):
    model.zero_grad()
    mine = data[rank :: comm.size]
    (model(mine) - mine[:, :2]).square().mean().backward()
    grads = [p.grad for p in model.parameters()]
    flat = torch.cat([g.reshape(-1) for g in grads])
    comm.all_reduce(flat)
    pieces = (flat / comm.size).split([g.numel() for g in grads])
    for p, piece in zip(model.parameters(), pieces):
        p.data -= 0.1 * piece.view(p.shape)
print(weights := model.weight.sum().item())

# %% [markdown] tags=["out"]
# The script on four new processes, which takes some 5 s: the same
# weights?

# %% tags=["out"]
printed = run_script("ddp.py", 4)
assert printed == [str(number) for number in weights]
printed[0]

# %% [markdown] tags=["breath"]
# ## The bill
#
# It takes the memory of a bucket, or of all where they overlap (in which
# the gradients then lie), and no computing. **It pays in wire**: up to
# twice the model, each step, from every rank; here, with 4 ranks, 1.5
# times. Sameness: the same bits on all ranks, and the same as one process
# but for rounding.
#
# Next: [lab 22](22_asynchrony.ipynb). Must all wait for one? It starts
# ranks of its own, so end these first: `%torchrun stop`.

# %% tags=["breath"]
n_bytes = sum(p.nbytes for p in models[0].values())
cost = {
    "traffic": sent,
    "steps": 3,
    "n_bytes": n_bytes,
    "badge": badge,
}
bill("data parallelism", lab="21", **cost)

# %% [markdown] tags=["teacher"]
# <details><summary>For teachers</summary>
#
# The class stalls at the tail: draw two lanes on the board and let
# someone place eight messages of 5 under eight blocks of 10, then of 15.
# Ask before the reveal: "what would a wire without latency change?"
#
# Two questions: "Why is the last bucket the first layer's?" "What does
# torch do with a parameter that no rank used, and what would weight decay
# do, if it were zeros?"
#
# In a 45-minute slot skip *Buckets* and the second exercise.
#
# </details>
