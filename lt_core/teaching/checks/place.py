"""Which line of the learner's own code it was: the innermost one that is neither ours, nor torch's, nor Python's."""

from __future__ import annotations

import functools
import inspect
import linecache
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from lt_core.teaching.checks.exercise import Place

OURS = str(Path(__file__).parents[2])


def code_of(fn: Callable[..., Any]) -> CodeType | None:
    """The code of a function, also of a partial, a wrapped or a callable object; None of what C wrote."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    found = inspect.unwrap(fn)
    if not hasattr(found, "__code__") and hasattr(type(found), "__call__"):  # noqa: B004 - it is looked at, not asked
        found = type(found).__call__
    found = getattr(found, "__func__", found)
    code: CodeType | None = getattr(found, "__code__", None)
    return code


def of_function(fn: Callable[..., Any]) -> Place | None:
    """Where it begins."""
    code = code_of(fn)
    return Place(code.co_filename, code.co_firstlineno, code.co_name) if code else None


def of_traceback(trace: TracebackType | None, fn: Callable[..., Any]) -> Place | None:
    """Where an exception was raised, as the learner sees it; the function's beginning if it never got into it."""
    return of_frames(traceback.extract_tb(trace), fn)


def of_frames(frames: Iterable[traceback.FrameSummary], fn: Callable[..., Any]) -> Place | None:
    """The innermost of these frames (outermost first) which is in the function's file, or in nobody's we know."""
    code = code_of(fn)
    own = [f for f in frames if (code and f.filename == code.co_filename) or not _known(f.filename)]
    return Place(own[-1].filename, own[-1].lineno or 0, own[-1].name) if own else of_function(fn)


def brought_back(place: Place | None, fn: Callable[..., Any]) -> Place | None:
    """The same line of the file it was written in: a function that was sent to a process has forgotten that file."""
    code = code_of(fn)
    if place is None or code is None:
        return place
    known = getattr(inspect.unwrap(fn), "__globals__", {}).get(place.function)
    named = code if place.function == code.co_name else code_of(known) if callable(known) else None
    return place._replace(file=named.co_filename) if named else place


def words(place: Place | None) -> str:
    """`your line 3, in answer: y = x.view(p, -1)`; "" where it is not known."""
    if place is None:
        return ""
    source = linecache.getline(place.file, place.line).strip()
    where = f"your line {place.line}" + (f", in {place.function}" if place.function.isidentifier() else "")
    return f"{where}: {source}" if source else where


def _known(filename: str) -> bool:
    paths = sysconfig.get_paths()
    return filename.startswith((OURS, paths["stdlib"], paths["purelib"], paths["platlib"], "<frozen"))
