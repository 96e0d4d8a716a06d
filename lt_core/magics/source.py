"""The kernel's objects as lines of a script: plain values, imports, functions with all they call."""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
from collections.abc import Mapping
from types import CodeType, FunctionType, ModuleType

from lt_core.base.errors import UserError
from lt_core.magics.scope import FOUND


def sources(given: Mapping[str, object]) -> list[str]:
    """Lines that make these objects, in an order in which each finds what it needs. Errors: `UserError`."""
    made: dict[str, str] = {}
    for name, value in given.items():
        _add(name, value, made)
    return list(made.values())


def _add(name: str, value: object, made: dict[str, str]) -> None:
    if name in made or (name in FOUND and isinstance(value, ModuleType)):
        return
    if name in FOUND:
        raise UserError(f"--save: a script has its own {name}", f"a function that uses the kernel's {name}")
    if isinstance(value, ModuleType):
        made[name] = f"import {value.__name__}" + f" as {name}" * (value.__name__ != name)
    elif isinstance(value, FunctionType) and value.__name__ != "<lambda>" and not value.__closure__:
        made[name] = ""  # so that a function may call itself
        for used in sorted(_globals(value.__code__) & set(value.__globals__)):
            _add(used, value.__globals__[used], made)
        del made[name]
        alias = f"\n{name} = {value.__name__}\n" if name != value.__name__ else ""
        made[name] = f"\n{_text(name, value)}{alias}"
    else:
        made[name] = f"{name} = {_literal(name, value)}"


def _text(name: str, value: FunctionType) -> str:
    try:
        return textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError) as error:
        raise _refused(name, value) from error


def _globals(code: CodeType) -> set[str]:
    """The names that a function, or one inside it, looks up outside of itself."""
    own = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*(_globals(part) for part in code.co_consts if isinstance(part, CodeType)))


def _literal(name: str, value: object) -> str:
    text = repr(value)
    try:
        if ast.literal_eval(text) == value:
            return text
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        raise _refused(name, value) from None
    raise _refused(name, value)


def _refused(name: str, value: object) -> UserError:
    what = f"--save cannot write {name}"
    return UserError(what, f"a {type(value).__name__}", "a plain value, a function, a module", "making it in the cell")
