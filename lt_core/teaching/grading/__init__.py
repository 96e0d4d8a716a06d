"""Grading: what `check` says of each learner's notebook, in processes of their own and within limits.

| file | idea |
|---|---|
| submissions | which notebooks of a folder are whose |
| cells | of a notebook's code, only what one exercise needs |
| guard | no network and no new processes for a learner's code; what it tried is written down |
| alone | the process in which it runs, and the answer that it leaves |
| watch | a process and all below it, held to limits, and ended |
| graded | one exercise of one notebook, from its process's answer to a grade |

This isolates from accidents; it is no sandbox. The code runs as the user who grades, and one that is written to harm
can read and remove what that user can. Grade strangers' notebooks as a user who owns nothing, or in a container.
"""
