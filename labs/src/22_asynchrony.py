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
# # 22 - Asynchrony: why wait for the slowest?
#
# You train on four machines, and one of them is ten times slower. In
# data parallelism all meet after each step, so **three machines spend
# nine tenths of their time waiting for one. Must they?**
#
# *Builds on [lab 21](21_data_parallel.ipynb): a step ends when the last
# rank has come. Takes 55 minutes, 4 ranks, 35 s of machine time.*
#
# The next cell imports what the others use, and takes some 4 s.

# %% tags=["setup"]
import torch

from lt_core import magics
from lt_core.base import Op, Trace
from lt_core.comm import launch, served
from lt_core.data import digits as scans
from lt_core.data_parallel import hogwild, local_sgd, partial
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel import stale_synchronous, staleness
from lt_core.data_parallel.partial import averaging, p_reduce
from lt_core.engine import drive, referee, simulate, speeds
from lt_core.teaching import bill, check, guess_of, predict, reveal
from lt_core.teaching import Purpose, run_script, verify
from lt_core.views import Three, courses, explore, gantt, show
from lt_core.views import version_strip, with_guess, witnesses

magics.load()

# %% [markdown] tags=["run"]
# ## Run it: everybody waits
#
# What is trained: an MLP that names handwritten digits, 1,536 to learn
# from and 261 held out. Worker *r* gets rows of its own at each clock.
# Reading them takes some 2 s.


# %% tags=["setup"]
learn, held = scans.digits()


def net():
    """An MLP 64-64-64-64-64-10, the same wherever it is made."""
    seed, layers = torch.Generator().manual_seed(0), []
    for inside, out in [(64, 64)] * 4 + [(64, 10)]:
        layers += [torch.nn.Linear(inside, out), torch.nn.ReLU()]
        w = layers[-2].weight
        torch.nn.init.kaiming_normal_(w, generator=seed)
        layers[-2].bias.data.zero_()
    return torch.nn.Sequential(*layers[:-1])


def loss(model, worker, clock):
    """Of the 32 rows that are this worker's turn."""
    rows = (torch.arange(32) + 32 * clock) * 4 + worker
    x, y = learn.x[rows % 1536], learn.y[rows % 1536]
    return torch.nn.functional.cross_entropy(model(x), y)


# %% [markdown] tags=["run"]
# A **parameter server** keeps the weights. Workers read them, compute a
# gradient, push it. *When the server updates* is a rule. Here: when all
# four gradients are there. Four workers (ranks 0 to 3), one server
# (rank 4); a gradient takes 1, 1, 1 and 10 seconds on a virtual clock,
# messages take none.

# %% tags=["run"]
one_slow = speeds.Speeds([1, 1, 1, 10])
policy = ps.ParameterServer(4, ps.Synchronous(4))
waiting = drive.drive(policy, one_slow, until_s=40)
print(f"{policy.version} updates of 4 gradients in 40 s")

# %% [markdown] tags=["see"]
# A bar is a gradient (the legend's *forward* stands for all of it, its
# backward, too): `2F2` was made of version 2 of the weights, and is the
# worker's gradient 2, counted from 0. Ranks 0 to 3 are the workers, rank
# 4 is the server. **Look how little of three lanes is blue.**

# %% tags=["see"]
title = "Three workers wait for one: a round lasts 10 s"
speed = "virtual clock; 1, 1, 1 and 10 s a gradient"
how = {"streams": ["compute"], "waiting": True, "unit": "s"}
how |= {"title": title, "under": f"{speed}; rank 4: the server"}
show(gantt(simulate.simulate(waiting, one_slow), **how))

# %% [markdown] tags=["predict"]
# ## Predict it
#
# Another rule: **update at each gradient that comes.** Nobody waits. But
# a gradient was made of weights that others have moved meanwhile. Its
# *staleness* is the number of updates between reading and applying. Four
# workers, all equally fast:

# %% tags=["predict"]
predict(
    "22.equal",
    "How old is each gradient, after the first few, 4 equal workers",
    unit="updates",
)

# %% tags=["run"]
policy = ps.ParameterServer(4, ps.Asynchronous())
equal = speeds.Speeds([1, 1, 1, 1])
run = drive.drive(policy, equal, until_s=100)
settled = staleness.uses(run.lanes)[8:]  # after the first few
old = {use.stale for use in settled}
print(f"{policy.version} updates in 100 s; updates old: {old}")

# %% tags=["reveal"]
reveal(
    "22.equal",
    max(old),
    why="while you compute one gradient, each of the other three"
    " brings one: of N workers N - 1.",
    usual='0 or 1 ("we are equally fast, so we are up to date").',
    wrong=(0, 1),
)

# %% [markdown] tags=["predict"]
# Now one of the four is ten times slower. It reads, computes for ten
# seconds, and pushes.

# %% tags=["predict"]
predict(
    "22.slow",
    "How old is the slow worker's gradient",
    unit="updates",
)

# %% tags=["run"]
policy = ps.ParameterServer(4, ps.Asynchronous())
free = drive.drive(policy, one_slow, until_s=400)
found = staleness.uses(free.lanes)[8:]  # after the first few
slow = {use.stale for use in found if use.rank == 3}
fast = [use.stale for use in found if use.rank < 3]
print(f"{policy.version:,} updates of one gradient in 400 s")
print(f"slow: {slow} updates old")
print(f"fast: {sum(fast) / len(fast):.2f}, {max(fast)} at most")

# %% [markdown] tags=["see"]
# ## See it: the version strip
#
# One lane a worker. A bar goes **from the version that a gradient read
# to the version that it made.** The number in it is its staleness, how
# many others came in between: so a bar is one longer. The dashed line
# is where the first long bar would end if your guess were right.

# %% tags=["see"]
strip = staleness.marked(simulate.simulate(free, one_slow))
title = f"A slow gradient is {max(slow)} updates old, and is used"
look = {"title": title, "under": speed, "versions": (0, 62)}
chart, guess = version_strip(strip, **look), guess_of("22.slow")
end = None if guess is None else guess + 1
show(with_guess(chart, end, "by your guess it ends at", axis="x"))

# %% tags=["reveal"]
reveal(
    "22.slow",
    max(slow),
    why="in its 10 seconds each of the three others brings 10 updates."
    " A fast one sees 1 from each fast one, 1/10 from the slow: 2.1.",
    usual='3 ("as for equal workers") or 10 ("ten times slower").',
    wrong=(3, 10),
)

# %% [markdown] tags=["explain"]
# > **Law.** While worker *r* computes one gradient, worker *q* brings
# > **seconds(r) / seconds(q)** of them. Sum that over all others.
#
# 1,240 gradients in 400 s are 124 in 40 s, where the synchronous run had
# 4 updates of 4. *No gradient is lost or wasted.* Some are old, and old
# ones point the way from a place that the weights have left.

# %% [markdown] tags=["breath"]
# **Where are you?** Nobody waits any more, and the price is staleness.
# So far a virtual clock said who comes when. Next: real processes, which
# decide that by themselves.

# %% [markdown] tags=["run"]
# ## Run it: four real processes
#
# The same policy, unchanged, on real ranks: three workers, one server.
# A *referee* stays in this notebook; each rank asks it what to do next.
# Gradients and weights cross between processes. Each device is emulated:
# a second lasts 50 ms, rank 2 is ten times slower. Two runs, and two
# more jobs for later: some 12 s in all, once the last of the next four
# cells begins.


# %% tags=["setup"]
def no_lock(comm):
    """How many writes are lost, all ranks on one set of weights."""
    layer = torch.nn.Linear(1000, 100, bias=False)
    layer.weight.data.zero_()

    def total(model, rank, step):
        return model.weight.sum()

    end = hogwild.train(comm, layer, total, 1.0, steps=60)
    return hogwild.lost(end.weights, 0.0, 1.0, 60 * comm.size)


# %% tags=["setup"]
def real_runs(comm, job, kind, first, second, groups):
    """Two runs with a server, one without, one without a lock."""
    before, costs = comm.traffic.copy(), speeds.Speeds([1, 1, 10])
    run = ps.run(comm, job, kind, first, costs, 0.05)
    sent = comm.traffic - before
    # the same once more, for its order
    again = ps.run(comm, job, kind, second, costs, 0.05)
    # P-Reduce, which has no server, and Hogwild: both for later
    models = averaging.run(comm, job, groups, one_slow, 0.05)
    return run, again, sent, models.weights, no_lock(comm)


# %% tags=["setup"]
# what is trained, and how a server steps
job = ps.Job(net, loss, lambda w: ps.SGD(w, 0.02))
rule = ps.Asynchronous()
# a policy a run: it decides who does what next
policies = [ps.ParameterServer(3, rule, updates=60) for _ in "ab"]
kind = ps.Kind.of(policies[0])  # what a rank must know of it
policies += [p_reduce.PartialReduce(4, 2, gradients=40)]
# a referee a policy: it stays here, and writes down what happens
asked = [referee.Referee(one, ps.never) for one in policies]
wired = [served(one) for one in asked]  # ranks ask it by wire

# %% tags=["run"]
print("four processes start")
ended = launch(real_runs, 4, job, kind, *wired, backend="gloo")
*records, grouped = [one.schedule() for one in asked]
orders = [[u.rank for u in staleness.uses(r.lanes)] for r in records]
print(f"the same order of gradients: {orders[0] == orders[1]}")

# %% [markdown] tags=["see"]
# Nobody planned this order. Two runs may have the same one, as two throws
# of dice may, but nothing sees to it. **Look at rank 2**: by law 20
# updates old for 1, 1, 10; here mostly a little less, for messages and
# waking up take time too, and slow the fast ones most. The last bar is
# shorter: nobody begins another gradient after 60 updates.

# %% tags=["see"]
real = staleness.marked(Trace.merge([one[0].trace for one in ended]))
title = "Real processes: the slow rank has the old gradients"
under = "4 processes, gloo; emulated devices, rank 2 ten times slower"
show(version_strip(real, title=title, under=under))

# %% [markdown] tags=["see"]
# Is such a run beyond all checking? The referee wrote down who did what
# in which order. **Replay** that order here, in one process. *Say which
# of [lab 00](00_start_here.ipynb)'s badges it will be*: ≡, ≈ or ≠.

# %% tags=["see"]
replay = [ps.weights(ps.replayed(r, job, kind)) for r in records]
ours = [ps.weights([one[k] for one in ended]) for k in (0, 1)]
same = verify(ours[0], replay[0], after="60 asynchronous updates")

# %% [markdown] tags=["explain"]
# The order was decided by chance, and **everything else follows from
# it**. What a gradient reads, it reads at one moment, which is on
# record. So a run that nobody can repeat at will can still be proved.

# %% [markdown] tags=["see"]
# Chance also decides who computes how many gradients. What each costs on
# the wire is a law: **a gradient goes up, new weights come down.** Ten
# numbers more go up: which of the net's ten tensors have a gradient.
# Bytes of the first run, for each gradient: by law, on a virtual clock,
# counted.


# %% tags=["setup"]
layout = ps.Layout(net())


class Sized(speeds.Speeds):
    """Speeds, and how many bytes a message has."""

    def nbytes(self, action):
        """A gradient to the server (rank 3), or weights from it."""
        return ps.law_bytes(layout, 1, int(action.rank == 3))


# %% tags=["setup"]
def weighed(rank, server=3):
    """What this rank sends for a gradient: the three witnesses."""
    made = [a.rank for a in records[0].actions() if a.op is Op.F]
    count = len(made) if rank == server else made.count(rank)
    plan = simulate.simulate(records[0], Sized([1, 1, 10]))
    out = [
        s for s in plan.spans if (s.rank, s.stream) == (rank, "out")
    ]
    sent = ended[rank][2]
    assert count == len(out) == sent.messages
    assert sent.bytes % count == 0
    said = sum(s.nbytes for s in out) // count, sent.bytes // count
    return Three(ps.law_bytes(layout, 1, int(rank == server)), *said)


# %% tags=["see"]
lanes = "rank 0", "rank 1", "rank 2, slow", "rank 3, server"
rows = {name: weighed(rank) for rank, name in enumerate(lanes)}
assert all(row.agree() for row in rows.values())
title = "A slow gradient takes as many bytes as a fast one"
under = "measured on 4 processes over gloo, for each gradient"
show(witnesses(rows, title=title, under=under))

# %% [markdown] tags=["explain"]
# Against synchronous training the weights differ, and should. What holds
# instead is *conservation*: each gradient produced is applied once.

# %% tags=["see"]
ledger = staleness.balance(records[0], server=3)
policy = ps.ParameterServer(3, ps.Synchronous(3), updates=20)
calm = drive.drive(policy, equal, until_s=100)
sync = ps.weights(ps.replayed(calm, job, ps.Kind.of(policy)))
law = "applied = produced, met exactly"
met = ledger.met and ledger.applied == ledger.produced
why = "gradients some updates old"
badge = verify(ours[0], sync, on_purpose=Purpose(why, law, met))

# %% [markdown] tags=["breath"]
# **Where are you?** A run that nobody can repeat was written down,
# replayed and counted. Next: what old gradients do to learning.

# %% [markdown] tags=["predict"]
# ## Why, and when not
#
# How much does it hurt to be old? Take the smallest problem there is:
# one weight, loss w² / 2, so the gradient is w. Plain descent is stable
# up to a step of 2. With four equal workers, staleness 3:

# %% tags=["predict"]
predict(
    "22.step",
    "The largest step that does not diverge, staleness 3",
    unit="",
)


# %% tags=["setup"]
class Parabola(torch.nn.Module):
    """w from 1."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(1))


def half_square(model, worker, clock):
    """Its gradient is w."""
    return (model.w**2).sum() / 2


# %% tags=["setup"]
def path(workers, step, seconds=60, momentum=0.0):
    """w over the seconds, N equal workers that do not wait."""
    policy = ps.ParameterServer(workers, ps.Asynchronous())
    clock = speeds.Speeds([1] * workers)
    plan = drive.drive(policy, clock, seconds)
    job = ps.Job(
        Parabola, half_square, lambda w: ps.SGD(w, step, momentum)
    )
    w = [1.0]

    def note(action, servers):
        if action.op is Op.U:
            w.append(servers[0].weights.item())

    ps.replayed(plan, job, ps.Kind.of(policy), note)
    return [(k / workers, v) for k, v in enumerate(w)]


# %% tags=["see"]
bound = ps.law_stable_step(3)
lines = {f"{f} x bound": path(4, f * bound, 30) for f in (0.8, 1, 1.1)}
if step := guess_of("22.step"):
    lines["your guess"] = path(4, step, 30)
title = "At the bound the weight swings for ever, above it grows"
axes = {"x": "seconds", "y": "weight", "between": (-3, 3)}
under = f"virtual clock, 4 equal workers, bound {bound:.3f}"
show(courses(lines, title=title, under=under, **axes))

# %% tags=["reveal"]
reveal(
    "22.step",
    round(bound, 3),
    why="an old gradient still pushes when the weight is past its"
    " goal: the older it is, the shorter the push that comes to rest."
    " It is 2 sin(pi / (4 tau + 2)), tau = 3: 2 sin(pi / 14).",
    usual='2 ("the loss is the same, so is the step").',
    wrong=(2,),
)

# %% [markdown] tags=["explain"]
# > **Law.** With staleness *τ* and curvature *L* a step is stable up to
# > **2 sin(π / (4 τ + 2)) / L**.

# %% tags=["explain"]
for age in range(4):
    print(f"staleness {age}: {ps.law_stable_step(age):.3f}")

# %% [markdown] tags=["explain"]
# Old gradients act like momentum that nobody asked for: the weight runs
# past its goal before it hears of it. So *τ* belongs to the step size.
# One remedy is to let a gradient count 1 / τ (`Job(..., aware=True)`),
# another is to bound τ.

# %% [markdown] tags=["breath"]
# **Where are you?** Waiting costs time, not waiting costs step size.
# Between the two lies a family: wait a little, or not for everybody.

# %% [markdown] tags=["run"]
# ## Run it: wait a little
#
# **Stale synchrony.** Nobody may be more than *s* clocks ahead of the
# slowest. s = 0 is synchronous, s = ∞ asynchronous. Speeds 1, 1, 10; how
# many clocks has each finished after 100 s?

# %% tags=["run"]
slow_third = speeds.Speeds([1, 1, 10])
for s in (0, 1, 3, 10, float("inf")):
    policy = ps.ParameterServer(
        3, stale_synchronous.StaleSynchronous(s)
    )
    drive.drive(policy, slow_third, until_s=100)
    print(f"s = {s:<4} clocks {policy.books[0].clocks}")

# %% [markdown] tags=["explain"]
# With s = 10 the fast ones are at 20, not at 100: once they are *s*
# ahead, they go at the pace of the slowest again. **A bound helps against
# hiccups, not against a rank that is slow for ever.**

# %% [markdown] tags=["run"]
# **Partial rounds** do not wait for the last at all. Three ranks take
# 10 s and one takes 100. *Say first:* how long is a round, if all must
# come, and if three are enough? How many must come is the *quorum*. And
# what becomes of the late gradient?
#
# | way | the late gradient | divided by |
# |---|---|---:|
# | backup workers | is dropped | the quorum |
# | eager | goes into the next round | all N |
# | P-Reduce | none: groups take the mean of models | the group |

# %% tags=["run"]
rounds = [partial.law_round_s([10, 10, 10, 100], q) for q in (4, 3)]
print(f"a round lasts {rounds[0]} s, of three {rounds[1]} s")
for rule in (partial.BackupWorkers(4, 3), partial.Eager(4, 3)):
    policy = ps.ParameterServer(4, rule, updates=40)
    plan = drive.drive(policy, one_slow, until_s=1000)
    made, applied, dropped, _ = staleness.balance(plan, server=4)
    name = type(rule).__name__
    print(f"{name}: made {made}, applied {applied}, dropped {dropped}")

# %% [markdown] tags=["run"]
# **P-Reduce** has no server: each rank steps with a model of its own, and
# the first two that are ready take the mean of their two models. The
# four processes did that as well, 40 gradients, and in the end all took
# one mean. *Do ranks agree after each mean?*

# %% tags=["run"]
apart = []


def spread(action, sides):
    """After each mean: how far two ranks are apart at most."""
    if action.op is Op.U:
        w = torch.stack([side.weights for side in sides])
        apart.append((w - w[0]).norm(dim=1).max().item())


again = averaging.replayed(grouped, job, spread)
sizes = [len(group) for group in p_reduce.groups(grouped)]
print(f"groups of {set(sizes[:-1])}, and one of {sizes[-1]}")
print(f"apart before the last mean: {apart[-2] > 0.01}")

# %% tags=["see"]
models = [one[3] for one in ended]
verify(models, [one.weights for one in again], after="40 gradients")
verify(models, after="the mean of all")

# %% [markdown] tags=["explain"]
# *Myth: after a partial round all ranks have the same weights.* With a
# server they have, for it keeps the only ones. In P-Reduce two ranks of
# a group agree, and **the others know nothing of it**, until they meet.
# The sum of all models is moved by gradients alone, never by a mean.

# %% [markdown] tags=["run"]
# **Hogwild** has no server and no lock: all ranks write to one set of
# weights in shared memory. Where gradients are sparse nothing meets.
# Where they are dense, a write is sometimes lost: two ranks load a
# number, both subtract, both store. The four processes above did that
# too, 60 steps each on 100,000 weights.

# %% tags=["run"]
print(f"writes were lost: {ended[0][4] > 0}")

# %% [markdown] tags=["breath"]
# **Where are you?** A bound, a quorum, groups, no lock: four ways not to
# wait. And one that waits more rarely is left.

# %% [markdown] tags=["run"]
# **Local SGD**: *H* steps alone, then the mean of all weights. With
# H = 1 that is synchronous training. *Which badge?*


# %% tags=["setup"]
def local(comm, every, steps):
    """The weights after each mean, of steps with a rate of 0.1."""
    model, means = net(), []
    replica = local_sgd.replicate(model, comm, every=every)
    for clock in range(steps):
        model.zero_grad()
        loss(model, comm.rank, clock).backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.1)
        if replica.average():
            flat = [p.detach().reshape(-1) for p in model.parameters()]
            means.append(torch.cat(flat))
    return means


# %% tags=["run"]
policy = ps.ParameterServer(4, ps.Synchronous(4), updates=3)
plan = drive.drive(policy, equal, until_s=10)
job = ps.Job(net, loss, lambda w: ps.SGD(w, 0.1))
three = ps.weights(ps.replayed(plan, job, ps.Kind.of(policy)))
alone = [
    means[-1] for means in launch(local, 4, 1, 3, backend="threads")
]
verify(alone, [three] * 4, because="means of sums", after="3 steps")

# %% [markdown] tags=["see"]
# ## See it: who learns fastest?
#
# Six ways on the digits, with the slow worker, against seconds of the
# virtual clock. Rates are such that a gradient moves the weights, or their
# mean, about as far in all six. It takes some 5 s.


# %% tags=["setup"]
def right(weights):
    """The share of digits held out that these weights name."""
    model = net()
    ps.Layout(model).load(weights)
    with torch.no_grad():
        named = model(held.x).argmax(1)
    return (named == held.y).float().mean().item()


# %% tags=["setup"]
def looked(schedule, weights_of):
    """Accuracy over the seconds, and what notes it every 3."""
    spans = simulate.simulate(schedule, one_slow).spans
    ends = {span.action: span.end_s for span in spans}
    seen = [(0.0, 0.1)]

    def note(action, sides):
        if action.op is Op.U and ends[action] >= seen[-1][0] + 3:
            seen.append((ends[action], right(weights_of(sides))))

    return seen, note


# %% tags=["setup"]
def course(rule, rate, until_s=60):
    """Accuracy over the seconds, with a server."""
    policy = ps.ParameterServer(4, rule)
    plan = drive.drive(policy, one_slow, until_s)
    job = ps.Job(net, loss, lambda w: ps.SGD(w, rate))
    seen, note = looked(plan, lambda servers: servers[0].weights)
    ps.replayed(plan, job, ps.Kind.of(policy), note)
    return seen


# %% tags=["setup"]
def in_pairs(until_s=60):
    """Accuracy over the seconds, of the mean of P-Reduce's models."""
    plan = drive.drive(p_reduce.PartialReduce(4, 2), one_slow, until_s)
    seen, note = looked(
        plan, lambda of: sum(x.weights for x in of) / 4
    )
    averaging.replayed(plan, job, note)
    return seen


# %% tags=["see"]
means = launch(local, 4, 2, 6, backend="threads")[0]
ways = [(20.0 * (k + 1), right(w)) for k, w in enumerate(means)]
lines = {
    "synchronous": course(ps.Synchronous(4), 0.1),
    "s = 3": course(stale_synchronous.StaleSynchronous(3), 0.025),
    "eager": course(partial.Eager(4, 3), 0.1),
    "asynchronous": course(ps.Asynchronous(), 0.025),
    "P-Reduce": in_pairs(),
    "local, H = 2": [(0.0, 0.1), *ways],
}
title = "Who waits for the slow worker is left behind"
axes = {"x": "seconds, virtual clock", "y": "accuracy", "exact": False}
show(courses(lines, title=title, under=speed, **axes))

# %% [markdown] tags=["explain"]
# *Local SGD* talks more rarely, and **waits as long**: each mean is one
# of all. It helps against a slow wire, not against a slow rank.
#
# *Why do lines dip?* Their rates are close to the bound for this net:
# with half of them they hardly do, and learn half as fast.
#
# *And if all ranks are alike?* Then synchronous wins on both axes:
# nobody waits, nothing is old, and the run can be repeated.

# %% [markdown] tags=["explore"]
# **Hunt:** find an *s* with which the fast worker never waits in these
# 100 s. Then for a worker that is three times slower only.


# %% tags=["setup"]
def clocks(s, slow):
    """When each clock of a fast worker ends, and of the slow one."""
    policy = ps.ParameterServer(
        3, stale_synchronous.StaleSynchronous(s)
    )
    clock = speeds.Speeds([1, 1, slow])
    plan = drive.drive(policy, clock, until_s=100)
    spans = simulate.simulate(plan, clock).spans
    done = [x for x in spans if x.action.op is Op.F and x.end_s <= 100]
    return [[x.end_s for x in done if x.rank == r] for r in (0, 2)]


# %% tags=["explore"]
def gated(s, slow):
    """Clocks over the seconds."""
    lines = {}
    for name, ends in zip(("fast", "slow"), clocks(s, slow)):
        lines[name] = [(0, 0), *zip(ends, range(1, 101))]
    last = [line[-1][1] for line in lines.values()]
    title = f"s = {s}: fast at clock {last[0]}, slow at {last[1]}"
    axes = {"x": "seconds", "y": "clocks", "between": (0, 100)}
    return courses(lines, title=title, under="virtual clock", **axes)


some = [0, 1, 3, 10, 30, 70, 100]
explore(gated, {"s": 70, "slow": 3}, s=some, slow=[10, 3, 1])

# %% [markdown] tags=["explain"]
# Set s = 10 and slow = 10 above, and the fast line bends: from then on it
# runs beside the slow one, ten clocks above. **A larger s puts that off,
# no more**: a run twice as long asks for an s twice as large.

# %% [markdown] tags=["breath"]
# **Where are you?** A bound does not help against who is slow for ever.
# Next, two more sliders: whom to wait for, how rarely, and how far to
# step.

# %% [markdown] tags=["explore"]
# **Hunt:** a quorum of Q of four goes past the slow one; Local SGD talks
# every H steps only. *How slow must the wire be until H = 10 beats a
# quorum of three?* *Sum* is what a sum over all ranks takes.


# %% tags=["setup"]
def rarely(quorum, every, sum_s):
    """Gradients that came in, over the seconds, by law."""
    one_s = partial.law_round_s([1, 1, 1, 10], quorum) + sum_s
    some_s = every * 10 + sum_s
    ends = int(1000 / one_s) * quorum, int(1000 / some_s) * 4 * every
    names = f"quorum {quorum}", f"local, H = {every}"
    lines = {n: [(0, 0), (1000, end)] for n, end in zip(names, ends)}
    title = f"Quorum {quorum}: {ends[0]:,} gradients"
    title += f"; H = {every}: {ends[1]:,}"
    under = f"by law; 1, 1, 1 and 10 s a gradient, {sum_s} s a sum"
    axes = {"x": "seconds", "y": "gradients"}
    return courses(lines, title=title, under=under, **axes)


# %% tags=["explore"]
some = {"quorum": [4, 3, 2], "every": [1, 2, 5, 10]}
found = {"quorum": 3, "every": 10, "sum_s": 10}
explore(rarely, found, **some, sum_s=[0, 1, 3, 10, 30])

# %% [markdown] tags=["explore"]
# **Hunt:** a step of 0.3 is fine for two workers. Keep it, add workers,
# and find where it diverges: *N is part of the step size.* Then go back
# to two, and give the server momentum.


# %% tags=["setup"]
def build(workers, step, momentum):
    """The weight's path, by replay on the virtual clock."""
    line = path(workers, step, 20, momentum)
    end = max(abs(weight) for at_s, weight in line if at_s > 15)
    word = "settles" if end < 1 else "does not settle"
    title = f"{workers} workers, step {step}, momentum {momentum}"
    title += f": {word} in 20 s"
    bound = ps.law_stable_step(workers - 1)
    under = f"virtual clock; bound without momentum {bound:.3g}"
    axes = {"x": "seconds", "y": "weight", "between": (-3, 3)}
    lines = {f"{workers} workers": line}
    return courses(lines, title=title, under=under, **axes)


# %% tags=["explore"]
found = {"workers": 8, "step": 0.3, "momentum": 0}
some = {"workers": [2, 4, 8, 12], "step": [0.3, 0.1, 0.5]}
explore(build, found, **some, momentum=[0, 0.5, 0.9])

# %% [markdown] tags=["breath"]
# **Where are you?** You know what each way promises. Next: a mistake
# that looks calm, and then you write three pieces.

# %% [markdown] tags=["break"]
# ## Break it
#
# Somebody writes eager rounds and loses the late gradient on the way: *it
# is dropped, and the sum is divided by all N as before.* Nothing raises.
# But each step is a quarter too short: three gradients, divided by four.
# **Conservation** sees it: the second cell below fails on purpose, with
# the badge ✘.


# %% tags=["break"]
class Calm(partial.BackupWorkers):
    """Late gradients are dropped; the divisor stays N."""

    divisor = 4


policy = ps.ParameterServer(4, Calm(4, 3), updates=20)
plan = drive.drive(policy, one_slow, until_s=1000)
kind = ps.Kind.of(policy)
quiet = ps.weights(ps.replayed(plan, job, kind))
account = staleness.balance(plan, server=4)
print(f"made {account.produced}, applied {account.applied}")

# %% tags=["break", "raises-exception"]
met = account.applied == account.produced
law = "applied = produced"
verify(quiet, three, on_purpose=Purpose("eager rounds", law, met))

# %% [markdown] tags=["yours"]
# ## Yours: the gate, the round, the step
#
# **The gate.** `clocks[r]` is how many clocks worker *r* has finished.
# May `rank` start its next one? The check also drives the runs of *Wait
# a little* with your gate, those with s = 0, 1, 3 and 10.
#
# Stuck? `from lt_core.teaching import hint`, then
# `hint("22.may_start")` in a cell of your own: one hint a call.


# %% tags=["yours"]
def may_start(clocks, rank, slack):
    """Whether rank is at most slack ahead of the slowest."""
    ### BEGIN SOLUTION
    return clocks[rank] - min(clocks) <= slack
    ### END SOLUTION


# %% tags=["yours"]
check("22.may_start", may_start, launch=magics.launch)

# %% [markdown] tags=["yours"]
# **The round that does not wait.** `weights` are every rank's, a list.
# `came` and `late` are dicts from rank to gradient: who came in time,
# and what was too late for the round before. Return the new weights of
# every rank: each gradient once, over all N, and nobody left behind.


# %% tags=["yours"]
def eager_round(weights, came, late):
    """One eager round with a step of 1, as a new list."""
    ### BEGIN SOLUTION
    total = torch.zeros_like(weights[0])
    for gradient in [*came.values(), *late.values()]:
        total = total + gradient
    return [w - total / len(weights) for w in weights]
    ### END SOLUTION


# %% tags=["yours"]
check("22.eager_round", eager_round, launch=magics.launch)

# %% [markdown] tags=["yours"]
# **The step.** N equal workers push one after the other. Which step
# would you take on a loss of this curvature? It must be stable, and not
# four times smaller than it could be.


# %% tags=["yours"]
def step_for(workers, curvature):
    """A step that is stable, and not timid."""
    ### BEGIN SOLUTION
    return 1 / (workers * curvature)
    ### END SOLUTION


# %% tags=["yours"]
check("22.step_for", step_for, launch=magics.launch)

# %% [markdown] tags=["papers"]
# **What was reported.** Each figure is its source's own.
#
# | who | what | figure |
# |---|---|---|
# | Niu 2011 | Hogwild: no lock, for sparse gradients | law |
# | Dean 2012 | Downpour: pushes and reads now and then | 1.7 B parameters (reported) |
# | Ho 2013 | stale synchrony | law |
# | Chen 2016 | backup workers | – |
# | Li 2020 | eager-SGD, under imbalance | 1.27 x (reported) |
# | Miao 2021 | P-Reduce: groups of who is ready | – |
#
# Little used where machines are alike: the run cannot be repeated, and
# the step has to shrink. All stand in `lt_core/data_parallel/`.

# %% [markdown] tags=["out"]
# ## Take it with you
#
# A script has no notebook to keep the referee in. So let the **virtual
# clock decide the order, and real ranks carry it out**: a run with stale
# gradients that you can repeat. `slow` is how slow rank 2 is. Four ranks
# start first, some 5 s in all.

# %% tags=["out"]
# %%torchrun -n 4 --save server.py --in ps,drive,speeds,scans,net --out w
slow, data = 10, scans.digits()[0]


def turn(model, worker, clock):
    rows = (torch.arange(32) + 32 * clock) * 3 + worker
    x, y = (part[rows % 1536].to(comm.device) for part in data)
    return torch.nn.functional.cross_entropy(model(x), y)


policy = ps.ParameterServer(3, ps.Asynchronous(), updates=60)
plan = drive.drive(policy, speeds.Speeds([1, 1, slow]), 1e9)
job = ps.Job(net, turn, lambda parts: ps.SGD(parts, rate=0.02))
side = job.side(ps.Kind.of(policy), rank, comm.device)
for action in plan.lanes[rank]:
    lt.data_parallel.enact.OnRank(side, comm).run([action])
w = f"|w| = {side.weights.norm():.3f}, {policy.version} updates"
print(w)

# %% [markdown] tags=["out"]
# 60 updates were asked, and 62 came: at the 60th two more gradients were
# under way, and none is lost. Now the script on four new processes,
# which takes some 8 s. Its last line is the server's. **If one number
# differs, the cell fails.**

# %% tags=["out"]
printed = run_script("server.py", 4)
assert printed == w
printed[-1]

# %% [markdown] tags=["breath"]
# ## The bill
#
# Asynchrony takes no memory worth a line and no more computing. It pays
# in **sameness**: weights that chance decides, and a smaller step.
#
# Next: [lab 32](32_gradient_compression.ipynb). Or send less. It starts
# ranks of its own, so end these first: `%torchrun stop`.

# %% tags=["breath"]
sent = ended[3][2]
wire = {"traffic": sent, "steps": sent.messages}
note = "wire: the server's, for each gradient"
wire["n_bytes"] = sum(p.nbytes for p in net().parameters())
cost = {"trace": real, "badge": badge, **wire, "note": note}
bill("asynchronous server", lab="22", **cost)

# %% [markdown] tags=["teacher"]
# <details><summary>For teachers</summary>
#
# The class stalls at "who is stale, the slow one or the fast ones?" Let
# four students push slips to a board: three every beat, one every tenth.
# Each slip carries the number that stood on the board when it was begun.
#
# Two questions: "Which of the three ways of being late would you choose
# for a machine that is slow for ever, which for one that hiccups?" (The
# bound of stale synchrony helps the second only.) "Why can the replay
# give the same bits though two runs need not be alike?"
#
# In a 45-minute slot skip *Run it: wait a little*, the hunts, and the
# second and third exercise.
#
# </details>
