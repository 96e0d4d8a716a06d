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
# # 20 - All-reduce: four ranks, one sum, nobody in charge
#
# Eight GPUs hold eight gradients of 100 MB, and each of them wants the
# sum. Collected on one GPU and handed back, that takes 11.2 s on office
# Ethernet, though one gradient crosses that wire in 0.8 s (1 Gbit/s).
# **Who is wasting ten seconds?**
#
# *Builds on PyTorch tensors alone. Takes 25 minutes, 4 ranks, 20 s of
# machine time.*

# %% tags=["setup"]
import torch

from lt_core.base import Schedule, Trace
from lt_core.base.cluster import KITCHEN, OFFICE, SHOEBOX, Cluster
from lt_core.collectives import all_reduce, naive, ring
from lt_core.comm import launch
from lt_core.comm.clocks import gather_traces
from lt_core.comm.shaped import shaped
from lt_core.engine.costs import of_cluster
from lt_core.engine.simulate import simulate
from lt_core.views import Three, gantt, show, witnesses

# %% [markdown] tags=["run"]
# ## Run it: everyone to rank 0
#
# A *rank* is a process with a number. Four of them will run the function
# below, each with numbers that no other rank has. They sum twice: 1,024
# numbers (8,192 bytes) on the wire as it is, and 1 MiB on a wire shaped
# to a kitchen's speed (100 Mbit/s, 1 ms), so slow that you can watch it.
#
# *Shaped* means that real messages cross, and wait until that wire would
# have delivered them.


# %% tags=["setup"]
def summed(comm, schedule, elements):
    """One sum by this schedule: the result, what I sent, and when."""
    x = torch.arange(elements, dtype=torch.float64, device=comm.device)
    x += 1_000_000 * comm.rank
    trace = Trace(schedule.name, backend=comm.backend)
    comm.barrier()
    before = comm.traffic.copy()
    total = all_reduce(comm, x, schedule, trace)
    sent = comm.traffic - before
    return total, sent.counted, gather_traces(comm, trace)


def one_rank(comm, schedule):
    """What each of the four processes does."""
    counted = summed(comm, schedule, 1024)
    watched = summed(shaped(comm, KITCHEN), schedule, 131_072)
    return counted, watched


# %% [markdown] tags=["run"]
# A *schedule* says who sends what to whom, and it is plain data. Here is
# the naive one: **everyone to rank 0, rank 0 to everyone.**

# %% tags=["run"]
print(naive.schedule(4).grid())

# %% [markdown] tags=["run"]
# Rows are ranks, columns are rounds. `0SEND1>0*4` reads: from chunk 0 on,
# in round 1, to rank 0, 4 chunks (all of them). `ADD` takes and adds,
# `COPY` takes and keeps.
#
# The next cell starts four processes and prints what each of them sent
# of the 8,192 bytes. It takes about 5 s.

# %% tags=["run"]
naive_runs = launch(one_rank, 4, naive.schedule(4))

print("rank   bytes  messages")
for rank, (counted, _) in enumerate(naive_runs):
    _, sent, _ = counted
    print(f"{rank:4}  {sent.bytes:6,}  {sent.messages:8}")

# %% [markdown] tags=["see"]
# ## See it: one queue
#
# Look only at rank 0: its wire is busy from left to right, and the other
# three queue for it. The upper half is what happened on your machine; a
# bar lasts from a rank's asking until it has its bytes, so it holds the
# waiting as well. The lower half is what the simulator says of **the same
# schedule, priced**.

# %% tags=["see"]
four = Cluster("four on a kitchen's wire", SHOEBOX, 4, KITCHEN)
price = of_cluster(four, chunk_bytes=2**20 // 4)
under = "1 MiB on 4 ranks, shaped wire: kitchen (100 Mbit/s, 1 ms)"

said = simulate(naive.schedule(4), price)
_, _, naive_happened = naive_runs[0][1]
title = "Rank 0 is the queue: naive all-reduce"
show(gantt(naive_happened, said, title=title, under=under))

# %% [markdown] tags=["explain"]
# Rank 0 takes in 3 n and sends out 3 n, one message after the other (*n*:
# bytes of the tensor). Add a rank and the queue grows by two.
#
# > **Law.** Of *p* ranks, rank 0 sends **n (p − 1)** bytes and takes as
# > many, in **2 (p − 1)** rounds that each carry all of *n*.
#
# With 8 ranks and 100 MB these are 14 rounds of 0.8 s: your 11.2 s.
#
# So nobody wastes ten seconds: seven wires wait for one. Could everyone
# be rank 0, each for an eighth of the numbers?

# %% [markdown] tags=["run"]
# ## Run it: the ring
#
# Cut the tensor in *p* chunks. Each chunk goes round once to be summed,
# and once more to be told. This is chunk a, which starts at rank 0:
#
# ```
# 0 --> 1 --> 2 --> 3   add, and pass on: rounds 0 to 2
# ^                 |   0 -a0-> 1 -a0+a1-> 2 -a0+a1+a2-> 3
# |                 |   keep, and pass on: rounds 3 to 5
# +-----------------+   3 -A-> 0 -A-> 1 -A-> 2
# ```
#
# The chunks set out from different ranks, so **every wire works in every
# round.** Here is the ring of three, as text: follow chunk 0.

# %% tags=["run"]
print(ring.schedule(3).grid())

# %% [markdown] tags=["run"]
# Now four real processes, the same function as before, another schedule.
# About 5 s again.

# %% tags=["run"]
ring_runs = launch(one_rank, 4, ring.schedule(4))

print("rank   bytes  messages")
for rank, (counted, _) in enumerate(ring_runs):
    _, sent, _ = counted
    print(f"{rank:4}  {sent.bytes:6,}  {sent.messages:8}")

# %% [markdown] tags=["see"]
# Look for a lane that waits. There is none: in each round every rank
# takes one chunk from its left, and sends one to its right. (That is why
# the picture needs only what comes in.)

# %% tags=["see"]
said = simulate(ring.schedule(4), price)
_, _, ring_happened = ring_runs[0][1]
title = "Nobody waits: ring all-reduce"
pair = ring_happened, said
show(gantt(*pair, title=title, under=under, streams=["in"]))

# %% [markdown] tags=["see"]
# Both runs on one axis: four processes, 1 MiB, the same wire. Compare
# where they end. The long bars of the upper half are ranks that asked,
# and wait for rank 0.

# %% tags=["see"]
title = "Same sum, same wire: the star queues, the ring flows"
pair = naive_happened, ring_happened
show(gantt(*pair, title=title, under=under, streams=["in"]))

# %% [markdown] tags=["see"]
# ## See it: three witnesses
#
# The *law* is a formula, the *simulation* prices the schedule, the
# *measurement* counted what left each process. In bytes and messages they
# agree to the digit, or the cell fails. **Seconds are measured, and never
# tested:** they belong to your machine.


# %% tags=["setup"]
def three(law, runs, rank):
    """Bytes that `rank` sends of 8,192: law, simulation, process."""
    schedule = law.schedule(4)
    spans = simulate(schedule, of_cluster(four, 2048)).spans
    out = [s for s in spans if (s.rank, s.stream) == (rank, "out")]
    sent = runs[rank][0][1]
    assert law.law_messages(4, 1024, rank) == len(out) == sent.messages
    by_law = law.law_bytes(4, 1024, 8, rank)
    return Three(by_law, sum(s.nbytes for s in out), sent.bytes)


# %% tags=["see"]
rows = {
    "naive, rank 0": three(naive, naive_runs, 0),
    "naive, the others": three(naive, naive_runs, 1),
    "ring, each rank": three(ring, ring_runs, 0),
}
assert all(row.agree() for row in rows.values())
title = "The ring sends 1.5 n from each rank, the star 3 n from one"
show(witnesses(rows, title=title, under="8,192 bytes on 4 real ranks"))

# %% tags=["see"]
print("bytes                   law  simulated  measured")
for name, row in rows.items():
    said = f"{row.law:9,}  {row.simulated:9,}  {row.measured:8,}"
    print(
        f"{name:18}{said} ", "all equal" if row.agree() else "differ"
    )

# %% [markdown] tags=["see"]
# Now the seconds of the run that you watched, 1 MiB on the kitchen's
# wire. Look for the gap between what was priced and what was measured:
# waking a process, handing it its bytes, adding up. No law prices that.

# %% tags=["see"]
seconds = {}
both = (naive, naive_happened), (ring, ring_happened)
for law, happened in both:
    by_law = law.law_seconds(4, 2**20, KITCHEN)
    simulated = simulate(law.schedule(4), price).makespan_s()
    measured = happened.makespan_s()
    seconds[happened.name] = Three(by_law, simulated, measured)

title = "Seconds: measured on this machine, never tested"
show(witnesses(seconds, title=title, under=under, unit="s"))

# %% [markdown] tags=["see"]
# If two ranks differ in the last bit today, they differ in the first
# digit next week. So we compare bits (a float64 seen as an int64), not
# values.

# %% tags=["see"]
for name, runs in ("naive", naive_runs), ("ring", ring_runs):
    position = torch.arange(1024, dtype=torch.float64)
    wanted = (4 * position + 6_000_000).view(torch.int64)
    for counted, _ in runs:
        assert torch.equal(counted[0].view(torch.int64), wanted)
    print(f"≡ SAME BITS: 1,024 numbers on 4 ranks, {name}")

# %% [markdown] tags=["explain"]
# Each number leaves your rank at most twice: once in a partial sum, once
# in a result.
#
# > **Law.** Each of *p* ranks sends **2 n (p − 1) / p** bytes in
# > **2 (p − 1)** rounds. No all-reduce sends fewer.
#
# | ranks | rounds | bytes each sends |
# |---:|---:|---:|
# | 4 | 6 | 1.500 n |
# | 8 | 14 | 1.750 n |
# | 1,024 | 2,046 | 1.998 n |
#
# The bytes stay below 2 n for ever, the rounds do not. That is when the
# ring is not your choice: small tensors on many ranks, where each
# round costs its latency and carries next to nothing.

# %% tags=["explain"]
for name, law in ("naive", naive), ("ring", ring):
    seconds = law.law_seconds(8, 100_000_000, OFFICE)
    print(f"{name:5}  8 ranks, 100 MB, office: {seconds:5.2f} s")

# %% [markdown] tags=["break"]
# ## Break it: nobody wants to be first
#
# Let each rank wait for its neighbour's chunk before it sends its own. It
# is one line more, and no rank ever starts. **A deadlock is a circle:**
# the schedule's check walks it and says who waits for whom.

# %% tags=["break", "raises-exception"]
polite = dict(ring.schedule(3).needs)
for lane in ring.schedule(3).lanes:
    send, take = lane[:2]
    polite[send] = (take,)

Schedule("polite ring", ring.schedule(3).lanes, polite).check()

# %% [markdown] tags=["yours"]
# ## Yours: which chunk, when?
#
# Write the first half of the ring. In round *k* of *p* − 1, a rank sends
# one chunk to its right, and takes one from its left, which it adds to
# its own. Which two?
#
# After the last round each chunk is whole on one rank, and **no
# contribution is counted twice.** Rounds and chunks count from 0.


# %% tags=["yours"]
def step(rank, k, p):
    """(the chunk I send, the chunk I take) in round k of p - 1."""
    ### BEGIN SOLUTION
    return (rank - k) % p, (rank - k - 1) % p
    ### END SOLUTION


# %% tags=["yours"]
def play(step, p):
    """All rounds on paper: a chunk is the set of ranks in its sum."""
    held = [[{rank} for _ in range(p)] for rank in range(p)]
    for k in range(p - 1):
        pairs = [step(rank, k, p) for rank in range(p)]
        moving = [set(held[r][pairs[r][0]]) for r in range(p)]
        for r in range(p):
            left, take = (r - 1) % p, pairs[r][1]
            at = f"{p} ranks, round {k}: rank {r}"
            sent = pairs[left][0]
            assert sent == take, (
                f"{at} takes {take}, {left} sends {sent}"
            )
            twice = held[r][take] & moving[left]
            assert not twice, f"{at} counts rank {min(twice)} twice"
            held[r][take] |= moving[left]
    whole = [c for row in held for c in range(p) if len(row[c]) == p]
    end = f"{p} ranks: whole in the end are the chunks {whole}"
    assert sorted(whole) == list(range(p)), end


# %% tags=["yours"]
def check(step):
    """Whether `step` is right, in words."""
    try:
        for p in 2, 3, 4, 5, 8:
            play(step, p)
        print("✔ every chunk is whole on one rank, with 2 to 8 ranks")
    except NotImplementedError:
        print("not yet: write step, and run its cell and this one")
    except (TypeError, IndexError) as wrong:
        print(f"✘ step gives two chunks from 0 to p - 1: {wrong}")
    except AssertionError as wrong:
        print(f"✘ {wrong}")


check(step)

# %% [markdown] tags=["out"]
# **Take it with you.** `ltlab ring --ranks 8` runs the ring in a terminal
# and leaves its trace and its figures in a folder. The ring itself is four
# lines of `lt_core/collectives/ring.py`: you wrote half of them, so read
# the other half. In your own program it is one call:
#
# ```
# total = all_reduce(comm, x, ring.schedule(comm.size))
# ```

# %% [markdown] tags=["teacher"]
# <details><summary>For teachers</summary>
#
# The class stalls where "add" and "keep" differ: draw the three ranks on
# the board, one colour a chunk, and let three students pass slips of
# paper. Ask before the second picture: "what does rank 0 send, in n?"
# (hands up for 1, 1.5, 3, 4), and after it: "and with a thousand ranks?".
# In a 45-minute slot skip *Break it*.
#
# </details>
