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

# %% [markdown] tags=["question", "tour"]
# # 00 - Start here: four ranks on the machine you have
#
# *"I have a laptop with two cores. Can it teach me anything true about
# training on a thousand GPUs?"*
#
# Yes. Bytes, messages, order, and mistakes are the same on both, to the
# digit. **Seconds are not**, and each picture says whose seconds it shows.
#
# *Builds on PyTorch tensors alone. Takes 20 minutes, 4 ranks, 20 s of
# machine time.*
#
# *One core will do: the ranks take turns, and the seconds grow.*
#
# Run the cells from top to bottom (Shift+Enter). The first one imports
# what the others use, and takes some 3 s.

# %% tags=["setup", "tour"]
from time import perf_counter, sleep

import torch

from lt_core import magics
from lt_core.base import Span, Trace
from lt_core.base.waits import waited_s, with_waits
from lt_core.collectives import all_reduce, naive, simulated
from lt_core.comm.clocks import gather_traces
from lt_core.comm.here import here
from lt_core.teaching import banner, bill, check, predict
from lt_core.teaching import reveal, run_script, verify
from lt_core.views import Figure, Three, explore, gantt
from lt_core.views import show, witnesses

magics.load()

# %% [markdown] tags=["run", "tour"]
# ## Run it: one cell, four processes
#
# A *rank* is a process with a number. **A cell that begins with
# `%%torchrun` runs on ranks**: PyTorch's own launcher starts them, and
# each runs the same cell by itself. It finds its number in `rank`, and
# everybody else behind `comm`.
#
# The next cell starts four of them, which takes about 4 s. They stay
# until the notebook's kernel is shut down, or `%torchrun stop` ends them.
# **One notebook at a time has ranks.** If another one still does, the
# cell says which: run `%torchrun stop --all` in a cell of your own, then
# this one again.

# %% tags=["run", "tour"]
# %%torchrun -n 4
print(f"I am rank {rank} of {comm.size}")

# %% [markdown] tags=["run", "tour"]
# They printed at the same time, in any order; you see them **sorted by
# rank**. What machine is below them? Rank 0 sends a message to each other
# rank and back, and takes the time. `--out` brings variables back to the
# notebook, as a list with one entry a rank; `--in` copies them the other
# way.
#
# You will read what carries the messages: *gloo* is PyTorch's carrier
# between CPUs, *NCCL* the one between GPUs.

# %% tags=["run", "tour"]
# %%torchrun --in here --out machine,backend
machine, backend = here(comm), comm.backend
backend

# %% tags=["run", "tour"]
banner(machine[0], backend[0])

# %% [markdown] tags=["run"]
# A rank is not a GPU: here four of them share your cores. **And ranks
# share no variables.** Set one on rank 2 only, and ask everybody.

# %% tags=["run"]
# %%torchrun --ranks 2
secret = 42
print("I know a secret")

# %% tags=["run"]
# %%torchrun
"knows it" if "secret" in globals() else "never heard of it"

# %% [markdown] tags=["run"]
# The second cell started nothing: the ranks stay from cell to cell, and
# so do their variables. What one rank has and another needs must travel,
# as a message.

# %% [markdown] tags=["predict", "tour"]
# ## Predict it: one sum
#
# Training on many devices is mostly one question: *here is my part, what
# is the sum of all parts?* **`comm.all_reduce(x)` answers it**: it puts
# the sum over all ranks into `x`, on each of them.
#
# Soon each of four ranks will hold three numbers, all of them its rank
# plus one: rank 0 has 1, 1, 1 and rank 3 has 4, 4, 4. Write a number
# down, and say how sure you are. Nobody sees it but you.

# %% tags=["predict", "tour"]
predict(
    "00.sum", "After the sum, what stands in each place of rank 0?"
)

# %% tags=["run", "tour"]
# %%torchrun --out x
x = torch.full((3,), rank + 1, device=comm.device)
comm.all_reduce(x)
x

# %% tags=["reveal", "tour"]
reveal(
    "00.sum",
    x[0][0],
    why="1 + 2 + 3 + 4, and the same on every rank.",
    usual='1 ("rank 0 keeps its own") or 4 ("one from each").',
    wrong=(1, 4),
)

# %% [markdown] tags=["breath", "tour"]
# **Where are you?** Ranks are processes that share nothing. A call that
# all of them make, such as this sum, is a *collective*: there they meet.
# Next: what if one of them comes late?

# %% [markdown] tags=["predict", "tour"]
# An all-reduce can end on no rank before it has begun on every rank. So
# let **rank 2 sleep for 1 s** before it joins in, and count what the
# others lose. The unit is a *rank-second*: one rank that does nothing
# for one second.

# %% tags=["predict", "tour"]
predict(
    "00.waiting",
    "Rank 2 comes 1 s late. How long is waited, all ranks together?",
    unit="rank-seconds",
)


# %% [markdown] tags=["run", "tour"]
# This is what each rank will do, with three readings of the clock noted
# down. The sleep stands for work, and is drawn as such. A *span* says what
# took time, on which rank, from when to when. A *trace* is a list of
# spans. **It is all that a picture needs.**


# %% tags=["setup", "tour"]
def timed(comm, sleep_s):
    """Work, then sum; rank 0 gets everybody's trace."""
    trace = Trace("work, then sum", backend=comm.backend)
    x = torch.ones(3, device=comm.device)
    comm.barrier()
    begun = perf_counter()
    sleep(sleep_s)
    came = perf_counter()
    comm.all_reduce(x)
    done = perf_counter()
    trace.spans += [
        Span(comm.rank, "compute", "work", begun, came),
        Span(comm.rank, "out", "all_reduce", came, done),
    ]
    return gather_traces(comm, trace)


# %% tags=["run", "tour"]
# %%torchrun --in timed --out traces
sleep_s = 1.0 if rank == 2 else 0.01
traces = timed(comm, sleep_s)
print(f"worked for {sleep_s:g} s, then summed")

# %% [markdown] tags=["see", "tour"]
# ## See it: your first trace
#
# A lane is a rank, and time runs to the right. **Find the lane without
# dots.** Everybody else waits for it.

# %% tags=["see", "tour"]
late = with_waits(traces[0])
title = "Rank 2 works for 1 s; three ranks wait for it"
under = f"4 ranks, measured on this machine, {backend[0]}"
show(gantt(late, title=title, under=under, one_lane=True))

# %% tags=["reveal", "tour"]
reveal(
    "00.waiting",
    round(waited_s(late), 1),
    why="three ranks wait for one second each.",
    usual='1 ("one second has passed"): on the clock, yes, but three'
    " ranks stood still in it.",
    wrong=(1,),
)

# %% [markdown] tags=["explain"]
# A sum over ranks needs a number from every rank, so whoever comes early
# waits for whoever comes last.
#
# ```
# rank 0  work|. . . . . . . . . .|sum
# rank 2  work work work work work|sum
#             ^ early             ^ the last one comes
# ```
#
# > **Law.** If one of *p* ranks comes *t* seconds late, the others wait
# > **(p − 1) t** rank-seconds.
#
# With 4 ranks that is 3. With 1,000 ranks, one second of one of them
# costs 999 rank-seconds: **almost 17 minutes of a GPU.** Waiting grows
# with the ranks. Most of this course is about that.

# %% [markdown] tags=["explore"]
# Now you set who sleeps, and for how long; a simulation answers at once.
# **Hunt:** find a setting where *more* sleep costs *less* waiting.


# %% tags=["explore"]
def build(asleep, seconds):
    """The picture of four ranks, of which some come late."""
    spans = []
    for r in range(4):
        came = seconds if r in asleep else 0.0
        spans.append(Span(r, "compute", "work", 0.0, came))
        spans.append(Span(r, "out", "all_reduce", came, seconds + 0.1))
    trace = with_waits(Trace("sleepers", spans, clock="simulated"))
    w = waited_s(trace)
    title = f"Together they wait {w:g} rank-second{'s' * (w != 1)}"
    drawn = gantt(trace, title=title, one_lane=True)
    return Figure(drawn.figure, f"{title}.")


sleepers = {"rank 2": [2], "2 and 3": [2, 3], "all": [0, 1, 2, 3]}
found = {"asleep": [2, 3], "seconds": 1.0}
explore(build, found, asleep=sleepers, seconds=[0.5, 1.0, 2.0])

# %% [markdown] tags=["explain"]
# Two sleepers of 1 s cost 2 rank-seconds, one sleeper costs 3: who
# sleeps does not wait. If all of them sleep, nobody waits at all, **and
# everything is late.** So waiting says where time is lost between ranks,
# not whether the ranks are fast.

# %% [markdown] tags=["breath"]
# **Where are you?** Four ranks run your cells, each for itself. They
# meet in collectives, and there the last one decides. A trace says who
# that was. Next: what did the sum cost, in bytes?

# %% [markdown] tags=["run"]
# ## See it: three witnesses
#
# The plainest sum over ranks: all others send what they have to rank 0,
# it adds, and sends the result back to each. Here are 131,072 numbers,
# 1 MiB, on each rank. `comm.traffic` counts every byte that leaves a
# rank. **Who sends how much?**

# %% tags=["run"]
# %%torchrun --in all_reduce,naive --out total,sent
x = torch.arange(131_072, dtype=torch.float64, device=comm.device)
x += 1_000_000 * rank
before = comm.traffic.copy()
total = all_reduce(comm, x, naive.schedule(comm.size))
sent = comm.traffic - before
print(f"sent {sent.bytes:,} bytes, messages: {sent.messages}")

# %% [markdown] tags=["see"]
# In this course, three witnesses are asked about every number:
#
# - the **law** ◇, a formula on paper;
# - the **simulation**, hatched: the plan of who sends what to whom,
#   played through without sending anything;
# - the **measurement**, solid: what left the processes.
#
# Bytes and messages must be equal *to the digit*, or the cell fails. One
# byte off means that somebody has not understood something. Look for a
# diamond that does not sit at the end of its bars.


# %% tags=["setup"]
def three(rank):
    """Bytes that a rank sends: by law, simulation, measurement."""
    plan = simulated(naive.schedule(4), machine[0], 2**20)
    out = [s for s in plan.spans if s.stream == "out"]
    return Three(
        law=naive.law_bytes(4, 131_072, 8, rank),
        simulated=sum(s.nbytes for s in out if s.rank == rank),
        measured=sent[rank].bytes,
    )


# %% tags=["see"]
rows = {f"rank {r}": three(r) for r in range(4)}
assert all(row.agree() for row in rows.values())
title = "Rank 0 sends three times as much as the others"
under = "1 MiB summed through rank 0, bytes sent, "
under += f"measured on 4 processes over {backend[0]}"
show(witnesses(rows, title=title, under=under))

# %% [markdown] tags=["see"]
# And is it the same sum everywhere? If two ranks differ in the last bit
# today, they differ in the first digit next week. **So bits are compared,
# not rounded numbers.** The line below is called the badge, and there are
# four:
#
# - ≡ the same bits;
# - ≈ the same but for rounding;
# - ≠ different on purpose;
# - ✘ a mistake, which fails the cell.

# %% tags=["see"]
badge = verify(total)

# %% [markdown] tags=["break"]
# ## Break it: who failed first?
#
# On a cluster, one process fails and a thousand complain. **Read the
# first line; the rest followed from it.** Here rank 1 fails while the
# others stand in the sum. The error below is on purpose.

# %% tags=["break", "raises-exception"]
# %%torchrun
if rank == 1:
    raise ValueError("rank 1 has lost its data")
comm.all_reduce(x)

# %% [markdown] tags=["break"]
# Worse than an error is silence. **A hang is rarely slow code; it is
# usually a rank that never came.** Rank 3 leaves out the call. You will
# be told who is missing, and from what: once a rank has ended the cell,
# nobody needs to wait for the 5 s to be over.

# %% tags=["break", "raises-exception"]
# %%torchrun --timeout 5
if rank != 3:
    comm.all_reduce(torch.ones(3, device=comm.device))

# %% [markdown] tags=["break"]
# The ranks live on, and so do their variables.

# %% tags=["break"]
# %%torchrun
y = torch.ones(3, device=comm.device)
comm.all_reduce(y)
y, "x" in globals()

# %% [markdown] tags=["breath"]
# **Where are you?** You can start ranks, read what each printed, see who
# waited for whom, count what was sent, and find who failed first. What
# you have not done is send anything yourself.

# %% [markdown] tags=["yours"]
# ## Yours: a sum made of messages
#
# Write the sum through rank 0 yourself. One verb is enough:
#
# - `comm.exchange([(x, 0)], [])` sends `x` to rank 0;
# - `comm.exchange([], [(came, 1)])` fills `came` with what rank 1 sent.
#
# Every rank runs your function, with another `comm.rank`, and returns
# the sum. Leave `x` as it was: it belongs to the caller.
#
# Stuck? `from lt_core.teaching import hint`, then `hint("00.my_sum")` in
# a cell of your own. Each call gives one more hint.


# %% tags=["yours"]
def my_sum(comm, x):
    """The sum of all ranks' x, on every rank, through rank 0."""
    ### BEGIN SOLUTION
    total = x.clone()
    if comm.rank != 0:
        comm.exchange([(x, 0)], [])
        comm.exchange([], [(total, 0)])
        return total
    came = torch.empty_like(x)
    for r in range(1, comm.size):
        comm.exchange([], [(came, r)])
        total += came
    for r in range(1, comm.size):
        comm.exchange([(total, r)], [])
    return total
    ### END SOLUTION


# %% [markdown] tags=["yours"]
# The check runs it on 1, 2, 3 and 4 ranks, first on threads, which
# answer at once, then on your four processes.

# %% tags=["yours"]
check("00.my_sum", my_sum, launch=magics.launch)

# %% [markdown] tags=["yours"]
# Now let code read a trace as you did: **who came last to the
# `all_reduce`, and how many seconds after the one before it?**
# `trace.spans` is the list; a span `s` has `s.rank`, `s.name` ("work" or
# "all_reduce"), `s.start_s` and `s.end_s`. The check draws new traces
# each time. (`hint("00.who_was_late")` helps here.)


# %% tags=["yours"]
def who_was_late(trace):
    """(the rank that came last, seconds after the one before it)."""
    ### BEGIN SOLUTION
    sums = [s for s in trace.spans if s.name == "all_reduce"]
    *_, before, last = sorted(sums, key=lambda s: s.start_s)
    return last.rank, last.start_s - before.start_s
    ### END SOLUTION


# %% tags=["yours"]
check("00.who_was_late", who_was_late)

# %% [markdown] tags=["yours"]
# **And decide.** One of *p* ranks comes `late_s` seconds late to a sum,
# which then takes `sum_s` seconds on each of them. How many rank-seconds
# are lost to waiting, and what costs more of them, so that you mend it
# first: `"the late rank"` or `"the sum"`? Return the number and the
# reason. (Hints: `hint("00.what_to_mend")`.)


# %% tags=["yours"]
def what_to_mend(p, late_s, sum_s):
    """(rank-seconds of waiting, "the late rank" or "the sum")."""
    ### BEGIN SOLUTION
    waited = (p - 1) * late_s
    return waited, "the late rank" if waited > p * sum_s else "the sum"
    ### END SOLUTION


# %% tags=["yours"]
check("00.what_to_mend", what_to_mend)

# %% [markdown] tags=["papers"]
# **Not when.** To know how long a run takes on another machine, measure
# there: nothing here says it. To know how many bytes it sends, in which
# order, and what happens if a rank is lost, your machine is enough.
#
# No paper is quoted in this lab. Later ones quote many, each figure with
# its source. The course follows the survey arXiv 2202.10435.

# %% [markdown] tags=["out"]
# ## Take it with you: the same cell as a script
#
# `--save` writes the cell as a script that needs no notebook.

# %% tags=["out"]
# %%torchrun --save hello_ranks.py
x = torch.full((3,), rank + 1, device=comm.device)
comm.all_reduce(x)
print(x.tolist())

# %% [markdown] tags=["out"]
# It runs in a terminal, on this machine or another, by the line above.
# Here the notebook runs it, in four new processes (about 5 s).

# %% tags=["out"]
said = run_script("hello_ranks.py", 4)
assert said == ["[10, 10, 10]"] * 4
said

# %% [markdown] tags=["breath"]
# ## The bill
#
# Every technique of this course pays in one of four currencies:
# **memory, compute, wire, sameness.** Each lab ends with a line on your
# bill, taken from what you ran. The first one: the sum through rank 0.
# What it sent is counted in *n*, the bytes that were summed, so that
# lines of later labs, which sum others, can be compared with it.
#
# Next: [lab 20](20_all_reduce.ipynb), where rank 0 is not in charge. It
# starts ranks of its own, so end these first: `%torchrun stop`.

# %% tags=["breath"]
cost = {"traffic": sent, "n_bytes": 2**20, "badge": badge}
bill("sum through rank 0", lab="00", **cost)

# %% [markdown] tags=["teacher"]
# <details><summary>For teachers</summary>
#
# The class stalls at *rank-seconds*: let four students stand up, three
# count aloud while one ties a shoe, and add up. Draw the four lanes on
# the board before the picture is shown, and ask: "where are the dots?"
# Two questions: "What changes if rank 0 is the late one?" (Nothing.) "What
# if the sum itself were ten times faster?" (Nothing, either.)
#
# In a 45-minute slot skip the secret and the second exercise. The third
# is a good end: who would mend the network? On a server with one core a
# student four ranks run as they do on two, only later: bytes, messages,
# orders and the waiting sum stay what they are.
#
# </details>
