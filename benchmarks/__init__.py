"""Comparisons with the tools that people use, one file each: `python -m benchmarks.simulate`, or all by `ltlab bench`.

Each has `rows()`, which yields a row as soon as it is measured, and `main()`, which prints them as JSON lines.
"""
