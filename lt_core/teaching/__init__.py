"""What a notebook uses around the engine: commit to a number, see the answer, write code and have it checked.

Everything works by widget and by plain code, in a notebook and without one. What a learner says stays in one file
beside the notebook.

| file | idea |
|---|---|
| learner | that file: predictions, hints seen, the bill |
| predict, predict_box | a number or a choice, written down before the run; its widget |
| reveal, score | the answer from the run, and how near the guess was |
| calibration | what "would bet on it" was worth |
| hint, hints/ | a ladder of four, one rung a call |
| check, heard, checks/ | a learner's function on ranks, property by property |
| verify, same, sets | the equality badge; how tensors differ; what can be compared |
| bill, bill_table | four currencies a technique |
| banner | what a lab runs on |
| class_chart | a class's machines in one picture, and who wins a ring |
| script | a saved cell, run as a terminal would |
| grading/ | `ltlab grade`: learners' notebooks by the same checkers, each in a process of its own |
| shown | text, and the same in HTML |
"""

from lt_core.teaching.banner import banner
from lt_core.teaching.bill import bill
from lt_core.teaching.calibration import calibration, calibration_figure
from lt_core.teaching.check import Checked, check
from lt_core.teaching.class_chart import class_chart, machine_line
from lt_core.teaching.hint import hint
from lt_core.teaching.learner import Learner
from lt_core.teaching.predict import predict
from lt_core.teaching.reveal import guess_of, reveal
from lt_core.teaching.script import run_script
from lt_core.teaching.verify import Badge, NotTheSame, Purpose, verify

__all__ = [
    "Badge", "Checked", "Learner", "NotTheSame", "Purpose", "banner", "bill", "calibration", "calibration_figure",
    "check", "class_chart", "guess_of", "hint", "machine_line", "predict", "reveal", "run_script", "verify",
]  # fmt: skip
