"""`ltlab`: one file a command; the engine does the work, these files ask it and print.

| file | command | idea |
|---|---|---|
| main | `ltlab` | the commands, and how each ends: 0 fine, 1 something is missing or wrong, 2 usage |
| page | - | tables and errors, on a terminal and in a pipe |
| copies, my_labs, lab | `ltlab lab` | copies that harm nothing; a learner's folder of them; JupyterLab on it |
| grade | `ltlab grade` | learners' notebooks by the labs' checkers, as CSV |
| groups | `ltlab ps`, `ltlab stop` | the ranks that notebooks hold, and their end |
| facts, findings, doctor | `ltlab doctor` | what this machine has; what each lack means; the page of it |
| trial, ring_files, ring | `ltlab ring` | one collective on real processes; its files; its three witnesses |
| bench | `ltlab bench` | the benchmarks of a checkout, and their tables |
"""
