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
# # 20 - All-reduce: four ranks, one sum, nobody in charge
#
# Eight GPUs hold eight gradients of 100 MB, and each of them needs the
# sum. Collected on one GPU and handed back, that takes 11.2 s on office
# Ethernet, though one gradient crosses that wire in 0.8 s (1 Gbit/s).
# **Who is wasting ten seconds?**
#
# *Builds on [lab 00](00_start_here.ipynb): who comes early waits for who
# comes last. Takes 75 minutes, 4 ranks, 35 s of machine time.*
#
# *35 minutes without the second half, which begins after your ring. Four
# ranks run on one core too: only the seconds grow.*
#
# The next cell imports what the others use, and takes some 3 s.

# %% tags=["setup", "tour"]
from time import perf_counter

import torch

from lt_core import collectives, launch, magics, teaching, views
from lt_core.base import Trace
from lt_core.base.cluster import KITCHEN, OFFICE, RACK, SHOEBOX
from lt_core.base.cluster import Cluster, Wire
from lt_core.collectives import ALGORITHMS, all_reduce, choices
from lt_core.collectives import crossovers, naive, ring, simulated
from lt_core.comm import clocks, here, shaped
from lt_core.teaching import bill, check, guess_of, predict
from lt_core.teaching import reveal, run_script, verify
from lt_core.views import Three, crossover, explore, gantt, show
from lt_core.views import stepper, wires, with_guess, witnesses

magics.load()

# %% [markdown] tags=["predict", "tour"]
# ## Predict it
#
# Before you know how: **what is the least that each rank must send?**
# Think of the best scheme you can imagine for 8 ranks. *n* stands for
# the bytes of one gradient, so "1" would mean that a rank sends its
# gradient once. Write it down; you may be wrong, we were.

# %% tags=["predict", "tour"]
predict(
    "20.ring_bytes",
    "What EACH rank sends in the best scheme, with 8 ranks",
    unit="n",
)

# %% [markdown] tags=["run", "tour"]
# ## Run it: everyone to rank 0
#
# Every rank will run the function below. It makes numbers that no other
# rank has, sums them by a *schedule*, and says what the rank has sent. A
# schedule is plain data: **who sends what to whom, in which round.**


# %% tags=["setup", "tour"]
def summed(comm, schedule, elements):
    """The sum by this schedule, what I sent, everybody's trace."""
    x = torch.arange(elements, device=comm.device).double()
    x += 1_000_000 * comm.rank
    trace = Trace(schedule.name, backend=comm.backend)
    comm.barrier()
    before = comm.traffic.copy()
    total = all_reduce(comm, x, schedule, trace)
    sent = comm.traffic - before
    return total, sent, clocks.gather_traces(comm, trace)


# %% [markdown] tags=["run", "tour"]
# The naive schedule sends all to rank 0, which adds, and sends the sum
# to all. Its shape is a **star** with rank 0 in the middle: pictures call
# it *naive*, the text calls it the star, and they are one.
#
# Rows are ranks, columns are rounds. A *chunk* is a part of the tensor,
# here a quarter. `0SEND1>0*4` reads *from chunk 0 on, in round 1, to rank
# 0, 4 chunks*, which is everything. `ADD` takes and adds, `COPY` takes
# and keeps.

# %% tags=["run", "tour"]
print(naive.schedule(4).grid())

# %% [markdown] tags=["run", "tour"]
# Now for real: four processes sum 1,024 numbers, 8,192 bytes. They start
# first (if none run yet), which takes about 4 s. **Who sends most?**

# %% tags=["run", "tour"]
# %%torchrun -n 4 --in summed,naive --out star,star_sent
star, star_sent, _ = summed(comm, naive.schedule(4), 1024)
print(
    f"sent {star_sent.bytes:,} bytes, messages: {star_sent.messages}"
)

# %% [markdown] tags=["see"]
# Rows send, columns take. **Look at the empty cells**: no two others ever
# talk.

# %% tags=["see"]
title = "Every message comes from rank 0, or goes to it"
show(
    wires(star_sent, title=title, under="8,192 bytes on 4 real ranks")
)

# %% [markdown] tags=["run", "tour"]
# Between two processes of one machine that is over before you can look.
# So put a kitchen's wire between them (100 Mbit/s, 1 ms) and sum 1 MiB.
# *Shaped* means: real messages cross, and wait until that wire would
# have delivered them.

# %% tags=["run", "tour"]
# %%torchrun --in shaped,KITCHEN --out star_trace
slow = shaped.shaped(comm, KITCHEN)
*_, star_trace = summed(slow, naive.schedule(4), 131_072)
print("summed 1 MiB")

# %% [markdown] tags=["see", "tour"]
# ## See it: one queue
#
# **Look only at rank 0**: its lane has no gap from left to right. On a
# bar, `0–3` means chunks 0 to 3: everything. The upper half happened on
# your machine; there a bar also holds the waiting for the other end. The
# lower half is the simulation, the same schedule priced: where a lane is
# empty, its rank waits. (Here colour and hatch say what is done, as the
# legend has it; only among the three witnesses does a hatch mean
# *simulated*.)

# %% tags=["see", "tour"]
four = Cluster("four ranks", SHOEBOX, 4, KITCHEN)
under = "1 MiB, 4 ranks, shaped wire: kitchen (100 Mbit/s, 1 ms)"
said = simulated(naive.schedule(4), four, 2**20)
title = "Rank 0 is the queue: naive all-reduce"
pair = star_trace[0], said
show(gantt(*pair, title=title, under=under, one_lane=True))

# %% [markdown] tags=["explain", "tour"]
# Rank 0 takes in 3 n and sends out 3 n, one message after the other. Add
# a rank, and the queue grows by two.
#
# > **Law.** Of *p* ranks, rank 0 sends **n (p − 1)** bytes and takes as
# > many, in **2 (p − 1)** rounds that each carry all of *n*.
#
# With 8 ranks and 100 MB these are 14 rounds of 0.8 s: your 11.2 s.
# Nobody wastes ten seconds. Seven wires wait for one.
#
# So: **could everyone be rank 0, each for an eighth of the numbers?**

# %% [markdown] tags=["run", "tour"]
# ## Run it: the ring
#
# Cut the tensor into *p* chunks. Each goes round once to be summed, and
# once more so that all have it. This is chunk a, which starts at rank 0:
#
# ```
# 0 --> 1 --> 2 --> 3   add, and pass on: rounds 0 to 2
# ^                 |   0 -a0-> 1 -a0+a1-> 2 -a0+a1+a2-> 3
# |                 |   keep, and pass on: rounds 3 to 5
# +-----------------+   3 -A-> 0 -A-> 1 -A-> 2
# ```
#
# *A* is chunk a of the whole sum. The chunks set out from different
# ranks, so **every wire works in every round.** The first half is called
# *reduce-scatter*, the second *all-gather*. Here is the ring of three:
# follow chunk 0. A `+` joins what a rank does at the same time.

# %% tags=["run", "tour"]
print(ring.schedule(3).grid())

# %% [markdown] tags=["run", "tour"]
# The same function, the same ranks, another schedule: 1,024 numbers, ten,
# which four does not divide, and the 1 MiB on the kitchen's wire.

# %% tags=["run", "tour"]
# %%torchrun --in ring --out total,sent,ring_trace
total, sent, _ = summed(comm, ring.schedule(4), 1024)
ten, ten_sent, _ = summed(comm, ring.schedule(4), 10)
*_, ring_trace = summed(slow, ring.schedule(4), 131_072)
print(f"sent {sent.bytes:,} bytes, messages: {sent.messages}")
print(f"of ten: {ten_sent.bytes} bytes, the last {ten[-1]:,.0f}")

# %% [markdown] tags=["see", "tour"]
# Both runs on one axis: 1 MiB, the same wire. **Look where they end.** A
# long bar is a rank that asked, and waits for rank 0.

# %% tags=["see", "tour"]
title = "Same sum, same wire: the star queues, the ring flows"
pair = star_trace[0], ring_trace[0]
show(gantt(*pair, title=title, under=under, streams=["in"]))

# %% [markdown] tags=["breath"]
# **Where are you?** Through rank 0, one wire carries everything. In the
# ring each wire carries its share. You have seen that it is faster, not
# yet how each rank knows what to send when.

# %% [markdown] tags=["run", "tour"]
# ## See it: step through the ring
#
# Four numbers on each rank, one a chunk, chosen so that you can see who
# is in a sum: **rank 0 writes ones, rank 1 tens, rank 2 hundreds, rank 3
# thousands.** 1,110 holds the parts of ranks 1, 2, and 3.
# `watch=chunk_table` notes down what a rank holds after each round. (On
# ranks `lt` stands for this project's package, `lt_core`.)

# %% tags=["run", "tour"]
# %%torchrun --in Trace,ring --out steps
x = torch.arange(1, 5, device=comm.device) * 10**rank
steps = Trace("ring", backend=comm.backend)
plan = ring.schedule(comm.size)
done = lt.collectives.all_reduce(
    comm, x, plan, steps, watch=lt.collectives.chunk_table
)
print(f"had {x.tolist()}, got {done.tolist()}")

# %% [markdown] tags=["see", "tour"]
# Step through it once with the arrow keys or the buttons, and **watch
# the column of chunk 2**: its sum sets out from rank 2, takes in a part
# at each rank it visits, and is in one place only until it is finished.
# A finished chunk is bold. Who owns it after round 2? (The table takes
# some 2 s to come.)

# %% tags=["see", "tour"]
names = {"add": "reduce-scatter", "copy": "all-gather"}
stepper(Trace.merge(steps), **names)

# %% [markdown] tags=["explain", "tour"]
# After *p* − 1 rounds each rank owns **one finished chunk: rank r has
# chunk r + 1.** Nobody had to be asked: in round *k*, which chunk moves
# follows from the rank's number. The second half passes finished chunks
# on, and adds nothing.
#
# A chunk is added up *once*, on its way round, and copied from there. So
# all ranks hold the same bits, whatever the order of summing does to the
# last digit.
#
# Some texts cut the tensor into "K parts", as if any K would do. **K is
# *p***: a round has one message on each of *p* wires. With fewer chunks
# wires stand idle; with more, chunks stand in a queue.

# %% [markdown] tags=["see"]
# ## See it: three witnesses
#
# You predicted for 8 ranks, so run 8: threads of this notebook this time,
# which send the same bytes. Law and simulation say what each rank must
# send; the measurement counted. **If they differ by one byte, the cell
# fails.** Your guess is the dashed line.


# %% tags=["setup"]
def three(way, size, rank, sent):
    """Bytes this rank sends of 8,192: law, simulated, measured."""
    cluster = Cluster("any", SHOEBOX, size, OFFICE)
    plan = simulated(way.schedule(size), cluster, 8192)
    out = [
        s for s in plan.spans if (s.rank, s.stream) == (rank, "out")
    ]
    assert way.law_messages(size, 1024, rank) == len(out)
    assert len(out) == sent[rank].messages
    by_law = way.law_bytes(size, 1024, 8, rank)
    return Three(by_law, sum(s.nbytes for s in out), sent[rank].bytes)


# %% tags=["see"]
eight = launch(summed, 8, ring.schedule(8), 1024, backend="threads")
eight_sent = [sent for _, sent, _ in eight]
rows = {
    "star, rank 0 of 4": three(naive, 4, 0, star_sent),
    "star, the others": three(naive, 4, 1, star_sent),
    "ring, each of 4": three(ring, 4, 0, sent),
    "ring, each of 8": three(ring, 8, 0, eight_sent),
}
assert all(row.agree() for row in rows.values())
title = "The star sends 3 n from one rank, the ring 1.5 n from each"
ran_on = f"measured on 4 processes over {star_trace[0].backend}"
under8 = f"n = 8,192 bytes; {ran_on}, the 8 are threads"
chart = witnesses(rows, title=title, under=under8)
show(with_guess(chart, guess_of("20.ring_bytes", times=8192)))

# %% tags=["reveal", "tour"]
reveal(
    "20.ring_bytes",
    ring.law_bytes(8, 1024, 8, rank=0) / 8192,
    why="each number leaves a rank at most twice: once in a partial"
    " sum, once in a result. 2 (p - 1) / p = 14 / 8.",
    usual='7 ("everyone must hear from everyone"): yes, but one sum on'
    " its way can speak for many.",
    wrong=(7,),
)

# %% [markdown] tags=["see"]
# Is it the same sum, to the last bit? Each rank's ring against what the
# star gave to rank 0. **Say which badge it will be** before you run it.

# %% tags=["see"]
badge = verify(total, [star[0]] * 4)

# %% [markdown] tags=["run"]
# And `comm.all_reduce`, which you called in lab 00? The same ranks, the
# same numbers, one line.

# %% tags=["run"]
# %%torchrun --out own
own = torch.arange(1024, device=comm.device).double()
own += 1_000_000 * rank
comm.all_reduce(own)
print(f"{own.numel():,} numbers, the last one {own[-1]:,.0f}")

# %% tags=["see"]
verify(own, total)

# %% [markdown] tags=["see"]
# Now the seconds of the runs on the kitchen's wire. Law and simulation
# price the wire alone. **The gap is what no law prices**: waking a
# process up, handing it its bytes, adding. It is measured, never tested.

# %% tags=["see"]
seconds = {}
for way, trace in (naive, star_trace[0]), (ring, ring_trace[0]):
    by_law = way.law_seconds(4, 2**20, KITCHEN)
    priced = simulated(way.schedule(4), four, 2**20)
    ends = priced.makespan_s(), trace.makespan_s()
    row = Three(by_law, *ends)
    seconds[trace.name] = row
title = "The law prices the wire, this machine adds the rest"
where = f"1 MiB, shaped wire: kitchen; {ran_on}"
show(witnesses(seconds, title=title, under=where, unit="s"))

# %% [markdown] tags=["predict"]
# ## Why, and when not
#
# With 4 ranks each sends 1.5 n, with 8 ranks 1.75 n. Where does that go?

# %% tags=["predict"]
predict(
    "20.many_ranks",
    "What each rank sends in a ring of 1,024 ranks",
    unit="n",
)

# %% tags=["reveal"]
for p in 4, 8, 1024:
    for way in ring, naive:
        took = way.law_seconds(p, 10**8, OFFICE)
        print(f"{way.schedule(2).name:6}{p:6,} ranks{took:10,.2f} s")
sends = ring.law_bytes(1024, 1024, 8, rank=0) / 8192
reveal(
    "20.many_ranks",
    sends,
    why="2 (p - 1) / p = 2,046 / 1,024: it never gets above 2.",
    usual='hundreds ("more ranks, more traffic"): more in all, yes,'
    " but not from each.",
)

# %% [markdown] tags=["explain"]
# Each number has to leave a rank to be added elsewhere, and each result
# has to come back to everybody who has not made it.
#
# > **Law.** Each of *p* ranks sends **2 n (p − 1) / p** bytes in
# > **2 (p − 1)** rounds. No all-reduce sends fewer bytes.
#
# | ranks | rounds | bytes each sends | 100 MB, ring | 100 MB, star |
# |---:|---:|---:|---:|---:|
# | 4 | 6 | 1.500 n | 1.20 s | 4.8 s |
# | 8 | 14 | 1.750 n | 1.40 s | 11.2 s |
# | 1,024 | 2,046 | 1.998 n | 1.80 s | 1,637 s, 27 min |

# %% [markdown] tags=["explain"]
# The seconds are the law's, on the office's wire (1 Gbit/s, 0.1 ms):
# **your 11.2 s have become 1.4.** The bytes stay below 2 n for ever. The
# rounds do not: they grow with the ranks, and each costs the wire's
# latency.

# %% [markdown] tags=["explain"]
# **That is the price of the ring.** With 1,000 bytes on 64 ranks it has
# 126 rounds, as many as the star, and a round costs 0.1 ms before its
# first byte arrives. So the ring is not your choice for
#
# - **small tensors on many ranks**: put many into one message first, or
#   take fewer rounds, as the second half of this lab does;
# - **one host**, where a copy in memory beats any socket;
# - **fast islands with a slow link between them**: sum inside each
#   island first.

# %% [markdown] tags=["breath"]
# **Where are you?** You know what the ring sends, how long it takes, and
# when it is the wrong choice. Next: four ways to get it wrong, and then
# you write it.

# %% [markdown] tags=["break"]
# ## Break it
#
# *Four ranks, ten numbers.* Somebody cuts them into four equal chunks of
# two. **Nothing raises.** It was right for 8 numbers, and their test had
# 8 numbers.

# %% tags=["break"]
# %%torchrun --in all_reduce,ring
for elements in (8, 10):
    x = torch.arange(1.0, elements + 1, device=comm.device)
    whole = elements // comm.size * comm.size
    result = x.clone()
    result[:whole] = all_reduce(comm, x[:whole], ring.schedule(4))
    wrong = (result != comm.size * x).sum()
    print(f"{elements} numbers: {wrong} of them are wrong")

# %% [markdown] tags=["break"]
# *Everybody sends first.* Two exchanges stand where one should: all send,
# then all take. **A deadlock is a circle**: each rank waits for the next
# one to take what it sends. MPI and others let small messages pass and
# hang when they grow. Here it hangs at once, and after 2 s you are told
# who waits for whom.

# %% tags=["break", "raises-exception"]
# %%torchrun --timeout 2
x = torch.ones(8, device=comm.device)
came = torch.empty_like(x)
right, left = (rank + 1) % 4, (rank - 1) % 4
comm.exchange([(x, right)], [])
comm.exchange([], [(came, left)])

# %% [markdown] tags=["break"]
# One exchange of both, `comm.exchange([(x, right)], [(came, left)])`,
# breaks the circle: all sends and receives of it start at once.

# %% [markdown] tags=["break"]
# *Each rank sums for itself.* All send all that they have to everybody,
# and each rank adds up, from its own part on. That is 3 n from each, and
# the sums are right. **Which badge?**

# %% tags=["break"]
# %%torchrun --out alone
x = torch.arange(1.0, 1001, device=comm.device).sqrt() / (rank + 3)
came, others = {}, [r for r in range(4) if r != rank]
for r in range(4):
    came[r] = x if r == rank else torch.empty_like(x)
gives = [(x, r) for r in others]
comm.exchange(gives, [(came[r], r) for r in others])
alone = came[rank]
for k in range(1, 4):
    alone = alone + came[(rank + k) % 4]
print(f"summed from rank {rank} on: {alone[-1]:.4f}")

# %% tags=["break"]
verify(alone)

# %% [markdown] tags=["break"]
# **Within some 1e-7, not the same bits**: each addition rounds, so the
# order decides about the last digit, and every rank had another order.
# Train on with such sums, and the ranks drift apart.
#
# *Dividing on the way.* For a mean somebody divides at each hop, not once
# at the end. Is that not the same?

# %% tags=["break"]
parts = [0.1, 0.2, 0.3]
print("divide the sum:", sum(parts) / 3)
print("sum the thirds:", sum(part / 3 for part in parts))

# %% [markdown] tags=["breath"]
# **Where are you?** A wrong ring is wrong at one length, hangs, or is
# right but for the last digit. So the check of yours looks at all three.

# %% [markdown] tags=["yours"]
# ## Yours: write the ring
#
# **First half.** Work on a copy of `x`. In each of *p* − 1 rounds, send
# one chunk to the right, take one from the left into a new buffer, and
# add it. Which two chunks? Step through the picture again and read off
# rank 0. In the end, rank r has to own chunk (r + 1) % p.
#
# `chunk(y, i, p)` gives chunk *i* of *p* as a view: what you write into
# it stands in `y`. It also cuts 10 numbers for 4 ranks.
#
# Stuck? `from lt_core.teaching import hint`, then
# `hint("20.reduce_scatter")` in a cell of your own: one hint a call.


# %% tags=["setup"]
def chunk(y, i, p):
    """Chunk i (modulo p) of the p chunks of y, as a view."""
    n, i = y.numel(), i % p
    return y[n * i // p : n * (i + 1) // p]


# %% tags=["yours"]
def reduce_scatter(comm, x):
    """Like x; chunk (rank + 1) % p of it is the sum's."""
    ### BEGIN SOLUTION
    y, rank, p = x.clone(), comm.rank, comm.size
    right, left = (rank + 1) % p, (rank - 1) % p
    for k in range(p - 1):
        out, into = chunk(y, rank - k, p), chunk(y, rank - k - 1, p)
        came = torch.empty_like(into)
        comm.exchange([(out, right)], [(came, left)])
        into += came
    return y
    ### END SOLUTION


# %% [markdown] tags=["yours"]
# The check draws new numbers each time, tries 1 to 5 ranks and awkward
# lengths on threads, then real processes.

# %% tags=["yours"]
check("20.reduce_scatter", reduce_scatter, launch=magics.launch)

# %% [markdown] tags=["yours"]
# **Second half.** `y` is what your first half gives: chunk (rank + 1) % p
# is finished, the rest is not worth keeping. Pass finished chunks on.


# %% tags=["yours"]
def all_gather(comm, y):
    """The whole sum, from the chunk that each rank owns in y."""
    ### BEGIN SOLUTION
    z, rank, p = y.clone(), comm.rank, comm.size
    right, left = (rank + 1) % p, (rank - 1) % p
    for k in range(p - 1):
        out, into = chunk(z, rank + 1 - k, p), chunk(z, rank - k, p)
        came = torch.empty_like(into)
        comm.exchange([(out, right)], [(came, left)])
        into.copy_(came)
    return z
    ### END SOLUTION


# %% tags=["yours"]
check("20.all_gather", all_gather, launch=magics.launch)

# %% [markdown] tags=["yours"]
# **Both.** This is what every data-parallel training does after each
# step, with gradients for `x`.


# %% tags=["yours"]
def my_all_reduce(comm, x):
    """The sum of all ranks' x: no rank in charge."""
    ### BEGIN SOLUTION
    return all_gather(comm, reduce_scatter(comm, x))
    ### END SOLUTION


# %% tags=["yours"]
check("20.all_reduce", my_all_reduce, launch=magics.launch)

# %% [markdown] tags=["breath"]
# **Where are you?** The ring is yours, to the byte. What follows is the
# second half: seven other ways to the same sum, which of them is the
# fastest when, and a function that decides. It takes 40 minutes.

# %% [markdown] tags=["explain"]
# ## Fewer rounds
#
# *Recursive doubling*: in each round all ranks swap **everything they
# have** with a rank twice as far away.
#
# ```
# round 0   0 <-> 1  2 <-> 3  4 <-> 5  6 <-> 7   sums of 2
# round 1   0 <-> 2  1 <-> 3  4 <-> 6  5 <-> 7   ... of 4
# round 2   0 <-> 4  1 <-> 5  2 <-> 6  3 <-> 7   ... of 8
# ```
#
# Three rounds for 8 ranks, where the ring has 14. But each rank sends
# 3 n, and in the ring 1.75 n: 100 MB take 2.4 s instead of 1.4.

# %% [markdown] tags=["predict"]
# So it wins with small tensors, and the ring with large ones. On the
# office's wire a round costs 0.1 ms, and a byte 8 ns. **Where do they
# cross?**

# %% tags=["predict"]
predict(
    "20.crossing",
    "8 ranks, office: doubling beats the ring below how many bytes",
    unit="bytes",
)

# %% tags=["reveal"]
office = {p: Cluster("office", SHOEBOX, p, OFFICE) for p in (4, 8)}
names = "recursive doubling", "ring"
two = {name: ALGORITHMS[name] for name in names}
_, (crossing, _) = crossovers(office[8], 8, among=two)
reveal(
    "20.crossing",
    crossing,
    why="3 rounds + 3 n = 14 rounds + 1.75 n, so n is 11 rounds / 1.25"
    " = 1.1 ms / (1.25 x 8 ns) = 110,000. There both take as long, so"
    " the ring wins from 110,001 on.",
    usual='"a few kB": a round on Ethernet is worth 12,500 bytes.',
)

# %% [markdown] tags=["explain"]
# *Halving-doubling* swaps halves instead, with ever nearer ranks, and
# then all the way back: **the ring's bytes in 6 rounds.** What rank 0
# does:
#
# ```
# round 0   0 <-> 4   gives chunks 4-7, adds 0-3
# round 1   0 <-> 2   gives 2 3, adds 0 1
# round 2   0 <-> 1   gives 1, adds 0: chunk 0 is finished
# round 3   0 <-> 1   gives 0, keeps 1
# round 4   0 <-> 2   gives 0 1, keeps 2 3
# round 5   0 <-> 4   gives 0-3, keeps 4-7
# ```
#
# *Ranks that are no power of two*: of 7, only 4 meet. The other three
# give all they have to a neighbour first, and are told at the end, in
# two more rounds of all n bytes.

# %% [markdown] tags=["explain"]
# *Tree*: sums climb to rank 0 and come down again. *Double tree*: each
# of two trees has half of the numbers, in pieces one behind the other,
# and **who is a branch in one is a leaf in the other.**
#
# ```
#          8               1      8 ranks, called 1 to 8
#      4               5          the second is the first,
#    2   6           3   7        every rank one further
#   1 3 5 7         2 4 6 8
# ```
#
# A tree's root sends 3 n with 8 ranks. In the double tree nobody sends
# more than 2 n, and with 1,024 ranks and 4 pieces it has 52 rounds, the
# ring 2,046. NCCL has used it since version 2.4.

# %% [markdown] tags=["explain"]
# *Torus*: a reduce-scatter along each row, a ring down each column with
# the part that is a rank's own by then, and an all-gather along the rows.
# As few bytes as the ring, in fewer rounds. *Hierarchical*: all of a
# group to its master, a ring of the masters, and back.
#
# ```
# 0 -> 1 -> 2 -> 3 -> (0)      1 2 3 -> 0     5 6 7 -> 4
# |    |    |    |                      0 <-> 4
# 4 -> 5 -> 6 -> 7 -> (4)      0 -> 1 2 3     4 -> 5 6 7
# ```
#
# Both are made for machines with several GPUs: **fast wires inside, a
# slow one between.**

# %% [markdown] tags=["run"]
# ## Run it: all of them
#
# Your four processes sum 1,024 numbers by each, and 8 threads of this
# notebook do the same. `ALGORITHMS` is all of them by name.


# %% tags=["run"]
# %%torchrun --out by_name
by_name = {}
for name, way in lt.collectives.ALGORITHMS.items():
    by_name[name] = summed(comm, way.schedule(4), 1024)[:2]
print(f"{len(by_name)} ways to one sum")

# %% tags=["run"]
eights = {
    name: launch(summed, 8, way.schedule(8), 1024, backend="threads")
    for name, way in ALGORITHMS.items()
}
fours = {name: [one[name] for one in by_name] for name in eights}
for name, way in ALGORITHMS.items():
    for ranks in fours[name], eights[name]:
        for rank, (result, count, *_) in enumerate(ranks):
            shape = len(ranks), 1024
            by_law = way.law_bytes(*shape, 8, rank)
            assert count.bytes == by_law, (name, rank)
            assert count.messages == way.law_messages(*shape, rank)
            assert torch.equal(result, ranks[0][0]), (name, rank)
print("all bytes, all messages and all bits are equal")

# %% [markdown] tags=["see"]
# **Look for the longest bar, and for those of 1.75 n.** Each row is the
# rank that sends most, of your 8 threads.


# %% tags=["see"]
def most(name):
    """Bytes of the rank that sends most, of 8: the witnesses."""
    way, counts = ALGORITHMS[name], [one[1] for one in eights[name]]
    spans = simulated(way.schedule(8), office[8], 8192).spans
    said, by_law = [0] * 8, [0] * 8
    for span in spans:
        said[span.rank] += span.nbytes * (span.stream == "out")
    for rank in range(8):
        by_law[rank] = way.law_bytes(8, 1024, 8, rank)
    return Three(max(by_law), max(said), max(c.bytes for c in counts))


rows = {name: most(name) for name in ALGORITHMS}
assert all(row.agree() for row in rows.values())
title = "Three send 1.75 n, the double tree 2 n, the star 7 n"
under8 = "n = 8,192 bytes, measured on 8 threads"
show(witnesses(rows, title=title, under=under8))

# %% [markdown] tags=["see"]
# Rounds: steps that must come one after the other, by law, in simulation,
# and in the trace of what ran. **Look at the double tree**: 38, but short
# ones, for with 8 pieces a tree each of them carries a sixteenth of *n*.

# %% tags=["see"]
print(f"{'8 ranks':20}{'law':>8}{'simulated':>11}{'measured':>10}")
for name, way in ALGORITHMS.items():
    trace = simulated(way.schedule(8), office[8], 8192)
    spans = trace.spans, eights[name][0][2].spans
    said, ran = (len({s.action.batch for s in one}) for one in spans)
    by_law = way.law_rounds(8)
    assert by_law == said == ran
    print(f"{name:20}{by_law:8}{said:11}{ran:10}")

# %% [markdown] tags=["breath"]
# **Where are you?** Law, simulation and run agree on what all of them
# send, in how many rounds, for 4 and for 8 ranks. Seconds come next.

# %% [markdown] tags=["run"]
# ## Run it: who is the fastest when?
#
# The four processes again, now with the office's wire between them:
# three sizes, each sum ten times, the quickest counts. `choices` makes
# each schedule at its best for a size, such as the double tree in as many
# pieces as are best. This takes 4 s.

# %% tags=["run"]
# %%torchrun --in shaped,office,perf_counter --out ran
slow, ran = shaped.shaped(comm, office[4].inner), {}
for nbytes in (1_000, 32_000, 1_000_000):
    x = torch.ones(nbytes // 4, device=comm.device)
    for one in lt.collectives.choices(office[4], 4, nbytes):
        plan, tries = one.schedule(), []
        for _ in range(10):
            slow.barrier()
            begun = perf_counter()
            lt.collectives.run(slow, x, plan)
            tries.append(perf_counter() - begun)
        ran.setdefault(one.name, {})[nbytes] = min(tries)
print("ran", len(ran), "algorithms")

# %% [markdown] tags=["see"]
# Lines are laws, **dots are what you ran**, with 1, 32 and 1,000 kB. The
# eight of one size stand side by side, so that none hides another: 1 kB
# reaches from 0.7 to 1.5 kB. They are above their laws, for waking a
# process up costs more than the office's 0.1 ms. The broad pale band lies
# under the fastest, which is named above; where an upright line stands,
# it changes.


# %% tags=["setup"]
def laws(cluster, ranks):
    """Seconds by bytes of each algorithm, each at its best."""
    rows = {n: choices(cluster, ranks, n) for n in fine}
    return {
        name: {n: row[k].seconds for n, row in rows.items()}
        for k, name in enumerate(ALGORITHMS)
    }


fine = [round(10 ** (k / 2)) for k in range(6, 17)]
dots = {
    name: {n: max(one[name][n] for one in ran) for n in ran[0][name]}
    for name in ALGORITHMS
}

# %% tags=["see"]
fastest = crossovers(office[4], 4)
at = fastest[1][0] // 1000
title = f"By law the winner changes once, at {at} kB"
under = "4 ranks, shaped wire: office (1 Gbit/s, 0.1 ms)"
lines = laws(office[4], 4)
show(crossover(lines, fastest, dots, title=title, under=under))

# %% [markdown] tags=["explore"]
# By law halving-doubling is never slower than the ring where ranks are a
# power of two. **Why, then, do machines use rings? Hunt:** with 8 ranks,
# make distance cost something: two ranks on each machine, 10 Gbit/s
# inside, and all that leaves a machine shares its one wire. Who wins
# now, and what became of halving? Then take 7 ranks, on one wire.


# %% tags=["setup"]
def build(ranks, wire, distance_costs):
    """Laws on one wire; simulations where pairs share one."""
    cluster = Cluster("one wire", SHOEBOX, 8, wire)
    note = "by law"
    if distance_costs:
        cluster = Cluster("pairs", SHOEBOX, 2, RACK, 4, wire)
        note = "simulated, pairs share it"
    best = crossovers(cluster, ranks, 10**8)
    lines = laws(cluster, ranks)
    under = f"{ranks} ranks, {wire}, {note}"
    title = f"Fastest with large tensors: {best[-1][1]}"
    drawn = crossover(lines, best, title=title, under=under)
    said = f"{title}. {under[0].upper()}{under[1:]}."
    return views.Figure(drawn.figure, said, rows=drawn.rows)


# %% tags=["explore"]
both = {"office": OFFICE, "kitchen": KITCHEN}
place = {"ranks": 8, "distance_costs": True}
explore(build, place, ranks=[4, 7, 8], wire=both, distance_costs=bool)

# %% tags=["explore"]
pairs = Cluster("pairs", SHOEBOX, 2, RACK, 4, OFFICE)
for cluster in office[8], pairs:
    print(f"10 MB, {cluster.name}:")
    for one in sorted(choices(cluster, 8, 10**7), key=lambda c: c[1]):
        print(f"    {one.name:20}{one.seconds:8.3f} s")

# %% [markdown] tags=["explain"]
# In round 0 of halving-doubling **all ranks send far away at once**, half
# of the numbers each, and pairs share a wire. A ring sends one chunk
# from machine to machine, whatever happens inside. The torus adds up
# inside first. Seven ranks fold: halving has two rounds of n more, the
# ring none.

# %% [markdown] tags=["explore"]
# One map of who wins, on one wire: a row a number of ranks, a letter a
# winner, in the colour of its line above. **Hunt:** its rows seem to have
# no order. Tick *powers of two only*, and one border is left. What do the
# numbers have in common where the ring wins, and those where the torus
# does? And what moves the border to the right: a slower start, or a
# faster wire?


# %% tags=["setup"]
def mapped(latency_us, rate_gbit_per_s, powers_of_two_only):
    """Who is the fastest, by ranks and bytes, by law."""
    wire = Wire("wire", latency_us / 1e6, rate_gbit_per_s * 1e9 / 8)
    cluster = Cluster("one wire", SHOEBOX, 64, wire)
    some = powers if powers_of_two_only else range(2, 13)
    rows = {
        f"{p} ranks": {
            n: collectives.choose(cluster, p, n).name for n in sizes
        }
        for p in some
    }
    border = crossovers(cluster, 8)[1][0] / 1000
    title = f"8 ranks: recursive doubling wins up to {border:,.0f} kB"
    who, under = list(ALGORITHMS), f"{wire}, by law"
    return views.winner_map(rows, who, title=title, under=under)


# %% tags=["explore"]
powers = [2, 4, 8, 16, 32, 64]
sizes = [round(10 ** (k / 3)) for k in range(9, 25)]
place = {"latency_us": 100, "rate_gbit_per_s": 1}
speeds = {"latency_us": [100, 1000], "rate_gbit_per_s": [1, 10]}
explore(mapped, place, **speeds, powers_of_two_only=bool)

# %% [markdown] tags=["explain"]
# With large tensors **powers of two halve, primes go round, all others
# make a torus.** (Two ranks need not halve: they swap all of *n* in one
# round.) What cannot be halved to the end has to fold, which takes two
# rounds of n; a prime cannot be cut into rows and columns. A ring takes
# any number of ranks, and talks to neighbours alone. That is why machines
# use it.
#
# The border is some rounds' latency, counted in bytes: it moves with
# latency *times* bandwidth. Ten times both, and it is a hundred times as
# far to the right.

# %% [markdown] tags=["breath"]
# **Where are you?** You know eight ways to one sum, what each sends, and
# that the wire decides which is the fastest. Two things are left: a case
# without any wire, and your own function that decides.

# %% [markdown] tags=["run"]
# And without any wire? On one host ranks can write into memory that all
# of them see. Four new processes, 1 MiB, which takes some 5 s; then your
# four ranks and their sockets.


# %% tags=["run"]
def quickest(comm, nbytes):
    """Seconds of the back end's own all-reduce, of 20 tries."""
    x, tries = torch.ones(nbytes // 4, device=comm.device), []
    for _ in range(20):
        comm.barrier()
        begun = perf_counter()
        comm.all_reduce(x)
        tries.append(perf_counter() - begun)
    return min(tries)


memory = max(launch(quickest, 4, 2**20, backend="shared_memory"))
sockets = max(magics.launch(quickest, 4, 2**20))
print(f"shared memory {1e3 * memory:6.2f} ms")
print(f"sockets       {1e3 * sockets:6.2f} ms")

# %% [markdown] tags=["explain"]
# **Why is that faster?** A socket copies each byte into the operating
# system and out of it, for every message. In shared memory each rank
# reads what the others wrote, adds up its share, and all read the result:
# no message is left to price. So on one host the question is not ring or
# tree.

# %% [markdown] tags=["yours"]
# **Yours: decide.** The fastest of three by law, for any ranks, bytes,
# and wire. `wire.latency_s` is what a round waits, `wire.bytes_per_s`
# what a second carries. *q* of the *p* ranks meet: the largest power of
# two up to *p*. Bytes are those of all rounds, one after the other.
#
# | name | rounds | bytes | if p > q, more |
# |---|---|---|---|
# | `"ring"` | 2 (p − 1) | 2 n (p − 1) / p | - |
# | `"recursive doubling"` | log₂ q | n log₂ q | 2 rounds, 2 n |
# | `"halving-doubling"` | 2 log₂ q | 2 n (q − 1) / q | 2 rounds, 2 n |


# %% tags=["yours"]
def my_choice(p, n, wire):
    """The name of the fastest."""
    ### BEGIN SOLUTION
    steps = p.bit_length() - 1
    q, fold = 2**steps, 2 * (p > 2**steps)
    laws = {
        "ring": (2 * (p - 1), 2 * (p - 1) / p),
        "recursive doubling": (steps + fold, steps + fold),
        "halving-doubling": (2 * steps + fold, 2 - 2 / q + fold),
    }
    alpha, beta = wire.latency_s, 1 / wire.bytes_per_s
    costs = {k: r * alpha + b * n * beta for k, (r, b) in laws.items()}
    return min(costs, key=costs.get)
    ### END SOLUTION


# %% tags=["yours"]
check("20.choose", my_choice)

# %% [markdown] tags=["explain"]
# `lt_core.collectives.choose(cluster, size, nbytes)` does it with all
# eight; `lt_core.comm.here.here(comm)` measures your machine for it.
# **No law knows what a wire does when others use it**: measure before
# you believe. And mind the tensors first: many small ones in one message
# (`lt_core.collectives.Pool`) save more rounds than any choice.

# %% [markdown] tags=["papers"]
# **What was reported.** Each figure is its source's own, of its machines.
#
# | who | what | figure |
# |---|---|---|
# | Patarasuk and Yuan 2009 | the ring, and that none sends less | law |
# | Gibiansky (Baidu) 2017 | the ring for training, 40 GPUs | 31 x (reported) |
# | Mikami and others (Sony) 2018 | rings in two directions, a torus | ResNet-50 in 122 s (abstract) |
# | Jia and others (Tencent) 2018 | stars in groups, a ring of masters, half precision | AlexNet in 4 min, ResNet-50 in 6.6 min (abstract) |
# | Sanders and others 2009, NCCL 2.4 2019 | two trees in place of a ring | (reported) |

# %% [markdown] tags=["out"]
# ## Take it with you
#
# The whole ring is one loop, for the same rule says in both halves which
# chunk goes next: **first it is added, then kept.** `--save` writes the
# cell as a script which needs nothing but `exchange`.

# %% tags=["out"]
# %%torchrun --save ring.py --out whole
p = comm.size
right, left = (rank + 1) % p, (rank - 1) % p
x = torch.arange(8.0, device=comm.device) + 100 * rank
parts = list(x.chunk(p))
for k in range(2 * (p - 1)):
    came = torch.empty_like(parts[0])
    comm.exchange([(parts[(rank - k) % p], right)], [(came, left)])
    at = (rank - k - 1) % p
    parts[at] = parts[at] + came if k < p - 1 else came
whole = torch.cat(parts).tolist()
print(whole)

# %% [markdown] tags=["out"]
# The script on four new processes, which takes some 5 s: the same
# numbers? In a terminal `ltlab ring --ranks 8` runs the project's own,
# which stands in `lt_core/collectives/ring.py`.

# %% tags=["out"]
printed = run_script("ring.py", 4)
assert printed == [str(numbers) for numbers in whole]
printed[0]

# %% [markdown] tags=["out"]
# **For your class.** One line that says what your machine is like: its
# links by ping-pong, and one core. Hand it to your teacher, who puts all
# of them in one picture. It is sent nowhere by itself.

# %% tags=["out"]
# %%torchrun --in here --out machine
machine = here.here(comm)

# %% tags=["out"]
mine = teaching.machine_line(machine[0], "my machine")
print(mine)

# %% [markdown] tags=["breath"]
# ## The bill
#
# The ring takes no memory worth a line and no computing beyond the adds.
# **It pays in wire**, and it pays the least that there is. Sameness: the
# same bits on all ranks.
#
# Next: [lab 21](21_data_parallel.ipynb). Every step of training ends with
# such a sum. What hides it? It starts ranks of its own, so end these
# first: `%torchrun stop`.

# %% tags=["breath"]
cost = {"traffic": sent, "n_bytes": 8192, "badge": badge}
bill("ring all-reduce", lab="20", **cost)

# %% [markdown] tags=["teacher"]
# <details><summary>For teachers</summary>
#
# The class stalls where "add" and "keep" differ: draw three ranks on the
# board, one colour a chunk, and let three students pass slips of paper.
# Ask before the witnesses: "what does rank 0 send, in n?" (hands up for
# 1, 1.5, 3, 4), and after them: "and with a thousand ranks?"
#
# Two questions: "Which bits would differ if each rank summed in its own
# order?" "What does the ring do while one rank is late?" (Lab 00: all
# wait, and now they wait for their neighbour.)
#
# The second half is a lecture of its own. Draw the butterfly and the two
# trees, and ask who waits for whom in each round. Then, before the
# explorer: "fewest rounds, fewest bytes: who wins at 1 kB, at 1 GB, with
# 7 ranks?" Its surprise is that a law without the machine's wires is
# half a law.
#
# In a 45-minute slot skip *Break it*, *all-gather*, and the second half.
#
# The class chart below takes a line a learner: put theirs in a file, and
# `open("class.jsonl")` in the place of `[mine]`. Ask before it is shown:
# "whose ring wins with 1 kB, and whose with 100 MB?" It need not be the
# same machine, and the picture says why.
#
# </details>

# %% tags=["teacher"]
show(teaching.class_chart([mine]))
