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
# # Twenty minutes: from one cell to a ring of ranks
#
# This notebook is collected from the labs: what one needs to have seen
# before the rest makes sense. It runs by itself, on any machine with two
# cores, in half a minute. You read, predict, and look; **nothing is to be
# written here.** The labs say more, break things, and give you your turn.
# Minutes that stand below are those of whole labs.

# %% [markdown] tags=["out", "tour"]
# ## Go on
#
# You have started four processes from a cell, read a trace, and stepped
# through a ring with its real values.
#
# The labs start ranks of their own, and one notebook at a time has some:
# run `%torchrun stop` in a cell before you open one.
#
# - [Lab 00](00_start_here.ipynb): what a rank is, how to find who failed
#   first, and your first exercise.
# - [Lab 20](20_all_reduce.ipynb): the ring in full. Break it, write it,
#   and see when it is the wrong choice.
