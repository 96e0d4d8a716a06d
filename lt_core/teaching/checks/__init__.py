"""What `check` knows of each exercise, and the answers by which it is itself checked.

| file | idea |
|---|---|
| exercise | cases, runs, properties: the nouns |
| attempt, place | one rank's call, written down; the learner's own line |
| here, elsewhere | ranks as threads, with an end to everything; the same on real processes |
| report | from runs to lines |
| tensors, counts | what exercises with tensors have in common: values, and what was sent |
| fastest | what choices have in common |
| start, start_decide | lab 00; its decision |
| start_answers, start_wrong | right and wrong answers to it |
| ring, ring_halves | lab 20's ring; what its halves hold and send |
| ring_answers, ring_wrong, ring_wrong_halves | right and wrong answers to it |
| choice, choice_answers | lab 20's choice of an all-reduce; right and wrong answers to it |
| stale, stale_gate, stale_round, stale_step | lab 22; its gate, its round, its step size |
| stale_answers, stale_wrong | right and wrong answers to it |
| replicas, replicas_model, replicas_pick | lab 21; what its ranks hold, its choice |
| replicas_answers, replicas_wrong, replicas_wrong_hooks | right and wrong answers to it |
| compress, compress_memory, compress_top_k, compress_low_rank, compress_pick | lab 32; its feedback and so on |
| compress_answers, compress_wrong, compress_wrong_low_rank, compress_wrong_pick | right and wrong answers to it |
"""

from lt_core.teaching.checks import choice, compress, replicas, ring, stale, start
from lt_core.teaching.checks.exercise import Exercise

EXERCISES: dict[str, Exercise] = {
    one.name: one
    for one in (
        *start.EXERCISES,
        *ring.EXERCISES,
        *choice.EXERCISES,
        *replicas.EXERCISES,
        *stale.EXERCISES,
        *compress.EXERCISES,
    )
}
