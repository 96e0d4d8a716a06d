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
# *Builds on [lab 20](20_all_reduce.ipynb): who comes early waits for who
# comes last. Takes 55 minutes, 4 ranks, 35 s of machine time.*
#
# The next cell imports what the others use, and takes some 4 s.

# %% tags=["setup"]
import torch

from lt_core import magics
from lt_core.base import Op, Trace
from lt_core.comm import launch, served
from lt_core.data import digits as images
from lt_core.data_parallel import enact, hogwild, local_sgd
from lt_core.data_parallel import partial, staleness
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel import stale_synchronous as stale
from lt_core.engine import drive, referee, simulate, speeds
from lt_core.teaching import bill, check, guess_of, predict, reveal
from lt_core.teaching import Purpose, run_script, verify
from lt_core.views import courses, explore, gantt, show
from lt_core.views import version_strip, with_guess

magics.load()

# %% [markdown] tags=["run"]
# ## Run it: everybody waits
#
# What is trained: an MLP that names handwritten digits, 1,536 to learn
# from and 261 held out. Worker *r* gets rows of its own at each clock.


# %% tags=["setup"]
learn, held = images.digits()


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
print(f"{policy.version} updates in 40 s")

# %% [markdown] tags=["see"]
# A bar is a gradient: `2F1` was made of version 2 of the weights, and is
# the worker's gradient 1. **Look at the white in three of four lanes.**

# %% tags=["see"]
title = "Three workers wait for one: a round lasts 10 s"
how = {"streams": ["compute"], "waiting": True, "unit": "s"}
show(gantt(simulate.simulate(waiting, one_slow), title=title, **how))

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
old = {use.stale for use in staleness.uses(run.lanes)[8:]}
print(f"{policy.version} updates in 100 s; updates old: {old}")

# %% tags=["reveal"]
reveal(
    "22.equal",
    max(old),
    why="while you compute one gradient, each of the other three"
    " brings one: N - 1.",
    usual='0 or 1 ("we are equally fast, so we are up to date").',
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
found = staleness.uses(free.lanes)[8:]
slow = {use.stale for use in found if use.rank == 3}
fast = [use.stale for use in found if use.rank < 3]
print(f"slow: {slow} updates old")
print(f"fast: {sum(fast) / len(fast):.2f}, {max(fast)} at most")

# %% [markdown] tags=["see"]
# ## See it: the version strip
#
# One lane a worker. A bar goes **from the version that a gradient read
# to the version that it made.** The number in it is its staleness.
# Your guess is where the first long bar would end.

# %% tags=["see"]
strip = staleness.marked(simulate.simulate(free, one_slow))
title = "The slow worker's gradient is 30 updates old, and is used"
chart = version_strip(strip, title=title, versions=(0, 62))
show(with_guess(chart, guess_of("22.slow"), axis="x"))

# %% tags=["reveal"]
reveal(
    "22.slow",
    max(slow),
    why="in its 10 seconds each of the three others brings 10 updates."
    " A fast one sees 1 from each fast one, 1/10 from the slow: 2.1.",
    usual='3 ("as for equal workers") or 10 ("ten times slower").',
)

# %% [markdown] tags=["explain"]
# > **Law.** While worker *r* computes one gradient, worker *q* brings
# > **seconds(r) / seconds(q)** of them. Sum that over all others.
#
# 124 gradients in 40 s, where the synchronous run had 16. *No gradient
# is lost or wasted.* Some are old, and old ones point the way from a
# place that the weights have left.

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
# a second lasts 50 ms, rank 2 is ten times slower. Two runs, some 10 s.


# %% tags=["setup"]
def no_lock(comm):
    """How many writes are lost, all ranks on one set of weights."""
    layer = torch.nn.Linear(1000, 100, bias=False)
    layer.weight.data.zero_()

    def total(model, rank, step):
        return model.weight.sum()

    end = hogwild.train(comm, layer, total, 1.0, steps=60)
    return hogwild.lost(end.weights, 0.0, 1.0, 60 * comm.size)


def real_runs(comm, job, kind, first, second):
    """Two runs, one after the other, and one without a lock."""
    costs = speeds.Speeds([1, 1, 10])
    both = first, second
    runs = [ps.run(comm, job, kind, w, costs, 0.05) for w in both]
    return *runs, no_lock(comm)


# %% tags=["run"]
job = ps.Job(net, loss, lambda w: ps.SGD(w, 0.02))
rule = ps.Asynchronous()
made = [ps.ParameterServer(3, rule, updates=60) for _ in "ab"]
asked = [referee.Referee(policy, ps.never) for policy in made]
kind = ps.Kind.of(made[0])
wired = [served(one) for one in asked]
ended = launch(real_runs, 4, job, kind, *wired, backend="gloo")
records = [one.schedule() for one in asked]
orders = [[u.rank for u in staleness.uses(r.lanes)] for r in records]
print(f"the same order of gradients: {orders[0] == orders[1]}")

# %% [markdown] tags=["see"]
# Nobody planned this order, and no two runs have the same. **Look at
# rank 2**: by law 20 updates old for 1, 1, 10; here a little less, for
# messages and waking up take time too, and slow the fast ones most.

# %% tags=["see"]
real = staleness.marked(Trace.merge([pair[0].trace for pair in ended]))
title = "Real processes: the slow rank has the old gradients"
under = "4 processes, gloo; emulated device, rank 2 10 x slower"
show(version_strip(real, title=title, under=under))

# %% [markdown] tags=["see"]
# Is such a run beyond all checking? The referee wrote down who did what
# in which order. **Replay** that order here, in one process. *Say which
# badge it will be*: ≡ same bits, ≈ nearly, or ≠ different on purpose.

# %% tags=["see"]
replay = [ps.weights(ps.replayed(r, job, kind)) for r in records]
ours = [ps.weights([pair[k] for pair in ended]) for k in (0, 1)]
same = verify(ours[0], replay[0], after="60 asynchronous updates")

# %% [markdown] tags=["explain"]
# The order was decided by chance, and **everything else follows from
# it**. What a gradient reads, it reads at one moment, which is on
# record. So a run that nobody can repeat can still be proved.
#
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
def path(workers, step, seconds=60):
    """|w| over the seconds, N equal workers that do not wait."""
    policy = ps.ParameterServer(workers, ps.Asynchronous())
    clock = speeds.Speeds([1] * workers)
    plan = drive.drive(policy, clock, seconds)
    job = ps.Job(Parabola, half_square, lambda w: ps.SGD(w, step))
    w = []

    def note(action, servers):
        if action.op is Op.U:
            w.append(servers[0].weights.item())

    ps.replayed(plan, job, ps.Kind.of(policy), note)
    return [((k + 1) / workers, v) for k, v in enumerate(w)]


# %% tags=["see"]
bound = ps.law_stable_step(3)
lines = {f"{f} of it": path(4, f * bound, 30) for f in (0.8, 1, 1.1)}
if step := guess_of("22.step"):
    lines["your guess"] = path(4, step, 30)
title = "At the bound the weight swings for ever, above it grows"
axes = {"x": "seconds", "y": "weight", "between": (-3, 3)}
under = f"virtual clock, 4 equal workers, bound {bound:.3f}"
show(courses(lines, title=title, under=under, **axes))

# %% tags=["reveal"]
reveal(
    "22.step",
    bound,
    why="2 sin(pi / (4 tau + 2)) with tau = 3: 2 sin(pi / 14).",
    usual='2 ("the loss is the same, so is the step").',
)

# %% [markdown] tags=["explain"]
# > **Law.** With staleness *τ* and curvature *L* a step is stable up to
# > **2 sin(π / (4 τ + 2)) / L**: 2, 1, 0.618, 0.445 for τ = 0, 1, 2, 3.
#
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
    policy = ps.ParameterServer(3, stale.StaleSynchronous(s))
    drive.drive(policy, slow_third, until_s=100)
    print(f"s = {s:<4} clocks {policy.books[0].clocks}")

# %% [markdown] tags=["explain"]
# With s = 10 the fast ones are at 20, not at 100: once they are *s*
# ahead, they go at the pace of the slowest again. **A bound helps against
# hiccups, not against a rank that is slow for ever.**

# %% [markdown] tags=["run"]
# **Partial rounds** do not wait for the last at all. Three ranks at 10 s
# and one at 100 s: a round lasts 100 s if all must come, and 10 s if
# three are enough. What becomes of the gradient that comes late?
#
# | way | the late gradient | divided by |
# |---|---|---:|
# | backup workers | is dropped | the quorum |
# | eager | goes into the next round | all N |
# | P-Reduce | none: groups take the mean of models | the group |

# %% tags=["run"]
for rule in (partial.BackupWorkers(4, 3), partial.Eager(4, 3)):
    policy = ps.ParameterServer(4, rule, updates=40)
    plan = drive.drive(policy, one_slow, until_s=1000)
    made, applied, dropped, _ = staleness.balance(plan, server=4)
    name = type(rule).__name__
    print(f"{name}: made {made}, applied {applied}, dropped {dropped}")

# %% [markdown] tags=["run"]
# **Hogwild** has no server and no lock: all ranks write to one set of
# weights in shared memory. Where gradients are sparse nothing meets.
# Where they are dense, a write is sometimes lost: two ranks load a
# number, both subtract, both store. The four processes above did that
# too, 60 steps each on 100,000 weights.

# %% tags=["run"]
print(f"writes lost, more than none: {ended[0][2] > 0}")

# %% [markdown] tags=["see"]
# ## See it: who learns fastest?
#
# All five on the digits, with the slow worker, against seconds of the
# virtual clock. Rates are chosen so that one second of all workers moves
# the weights about as far. It takes some 5 s.


# %% tags=["setup"]
def right(weights):
    """The share of digits held out that these weights name."""
    model = net()
    ps.Layout(model).load(weights)
    with torch.no_grad():
        named = model(held.x).argmax(1)
    return (named == held.y).float().mean().item()


# %% tags=["setup"]
def course(rule, rate, until_s=90):
    """Accuracy over the seconds, looked at every 3."""
    policy = ps.ParameterServer(4, rule)
    plan = drive.drive(policy, one_slow, until_s)
    spans = simulate.simulate(plan, one_slow).spans
    ends = {span.action: span.end_s for span in spans}
    job = ps.Job(net, loss, lambda w: ps.SGD(w, rate))
    seen = [(0.0, 0.1)]

    def note(action, servers):
        if action.op is Op.U and ends[action] >= seen[-1][0] + 3:
            seen.append((ends[action], right(servers[0].weights)))

    ps.replayed(plan, job, ps.Kind.of(policy), note)
    return seen


# %% tags=["see"]
lines = {
    "synchronous": course(ps.Synchronous(4), 0.1),
    "s = 3": course(stale.StaleSynchronous(3), 0.025),
    "backup": course(partial.BackupWorkers(4, 3), 0.1),
    "eager": course(partial.Eager(4, 3), 0.1),
    "asynchronous": course(ps.Asynchronous(), 0.025),
}
title = "Who waits for the slow worker learns ten times slower"
axes = {"x": "seconds, virtual clock", "y": "accuracy", "exact": False}
show(courses(lines, title=title, under="speeds 1, 1, 1, 10", **axes))

# %% [markdown] tags=["explain"]
# *And if all are alike?* Then synchronous wins on both axes: nobody
# waits, nothing is old, and the run can be repeated. **Local SGD** is
# the other way to talk less: *H* steps alone, then the mean of the
# weights. With H = 1 that is synchronous training. Which badge?


# %% tags=["setup"]
def local(comm):
    """Three local steps, each followed by the mean of weights."""
    model = net()
    replica = local_sgd.replicate(model, comm, every=1)
    for clock in range(3):
        model.zero_grad()
        loss(model, comm.rank, clock).backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.1)
        replica.average()
    return [p.detach() for p in model.parameters()]


# %% tags=["see"]
policy = ps.ParameterServer(4, ps.Synchronous(4), updates=3)
plan = drive.drive(policy, equal, until_s=10)
job = ps.Job(net, loss, lambda w: ps.SGD(w, 0.1))
three = ps.weights(ps.replayed(plan, job, ps.Kind.of(policy)))
every = launch(local, 4, backend="threads")
alone = [torch.cat([p.reshape(-1) for p in one]) for one in every]
verify(alone, [three] * 4, because="means of sums", after="3 steps")

# %% [markdown] tags=["explore"]
# **Hunt:** a step of 0.3 is fine for two workers. Keep it, add workers,
# and find where it diverges. *N is part of the step size.*


# %% tags=["explore"]
def build(workers, step):
    """The weight's path, by replay on the virtual clock."""
    top = ps.law_stable_step(workers - 1)
    word = "stable" if step <= top else "diverges"
    title = f"{workers} workers, step {step}: {word}, bound {top:.3g}"
    lines = {f"{workers} workers": path(workers, step, 20)}
    axes = {"x": "seconds", "y": "weight", "between": (-3, 3)}
    return courses(lines, title=title, under="virtual clock", **axes)


found = {"workers": 8, "step": 0.3}
explore(build, found, workers=[2, 4, 8, 12], step=[0.3, 0.1, 0.5])

# %% [markdown] tags=["breath"]
# **Where are you?** You know what each way promises. Next: a mistake
# that looks calm, and then you write three pieces.

# %% [markdown] tags=["break"]
# ## Break it
#
# *Drop the late gradient, and divide by all N as before.* Nothing
# raises, and the loss falls smoothly. It learns a quarter less with each
# step: three gradients, divided by four. **Conservation** sees it.


# %% tags=["break"]
class Calm(partial.BackupWorkers):
    """Late gradients are dropped; the divisor stays N."""

    divisor = 4


policy = ps.ParameterServer(4, Calm(4, 3), updates=40)
plan = drive.drive(policy, one_slow, until_s=1000)
kind = ps.Kind.of(policy)
quiet = ps.weights(ps.replayed(plan, job, kind))
account = staleness.balance(plan, server=4)
print(f"made {account.produced}, applied {account.applied}")

# %% tags=["break", "raises-exception"]
met = account.applied == account.produced
law = "applied = produced"
verify(quiet, three, on_purpose=Purpose("partial rounds", law, met))

# %% [markdown] tags=["yours"]
# ## Yours
#
# **The gate.** `clocks[r]` is how many clocks worker *r* has finished.
# May `rank` start its next one? The check also drives the four tables
# above with your gate.
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
# | Chen 2016 | backup workers | (reported) |
# | Li 2020 | eager-SGD, under imbalance | 1.27 x (reported) |
# | Miao 2021 | P-Reduce: groups of who is ready | (reported) |
#
# Little used where machines are alike: the run cannot be repeated, and
# the step has to shrink. All stand in `lt_core/data_parallel/`.

# %% [markdown] tags=["out"]
# ## Take it with you
#
# A script has no notebook to keep the referee in. So let the **virtual
# clock decide the order, and real ranks carry it out**: a run with stale
# gradients that you can repeat. `slow` is how slow rank 2 is.

# %% tags=["out"]
# %%torchrun -n 4 --save server.py --in ps,drive,speeds,enact,images,net
slow, data = 10, images.digits()[0]


def turn(model, worker, clock):
    rows = (torch.arange(32) + 32 * clock) * 3 + worker
    x, y = data.x[rows % 1536], data.y[rows % 1536]
    return torch.nn.functional.cross_entropy(model(x), y)


policy = ps.ParameterServer(3, ps.Asynchronous(), updates=60)
plan = drive.drive(policy, speeds.Speeds([1, 1, slow]), 1e9)
job = ps.Job(net, turn, lambda parts: ps.SGD(parts, rate=0.02))
side = job.side(ps.Kind.of(policy), rank)
for action in plan.lanes[rank]:
    enact.OnRank(side, comm).run([action])
print(f"|w| = {side.weights.norm():.3f}, {policy.version} updates")

# %% [markdown] tags=["out"]
# The script on four new processes, which takes some 8 s. The last line
# is the server's: the same number?

# %% tags=["out"]
printed = run_script("server.py", 4)
printed[-1]

# %% [markdown] tags=["breath"]
# ## The bill
#
# Asynchrony takes no memory worth a line and no more computing. It pays
# in **sameness**: other weights each time, and a smaller step.

# %% tags=["breath"]
bill("asynchronous server", lab="22", trace=real, badge=badge)

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
# give the same bits though no two runs are alike?"
#
# In a 45-minute slot skip *Wait a little*, *Explore* and *Yours* 2, 3.
#
# </details>
