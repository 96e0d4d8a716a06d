"""`%%torchrun -n 4`: the cell below runs on four real processes, which keep their variables for the next one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from lt_core.base.errors import UserError
from lt_core.comm import cuda, host
from lt_core.comm.group import Cell, Group, Line, Outcome
from lt_core.magics import commands, expect, script
from lt_core.magics.errors import CellSyntaxError, hinted
from lt_core.magics.held import Held
from lt_core.magics.live import Live, Printed, Screen
from lt_core.magics.options import Options, arguments, read
from lt_core.magics.paper import Output
from lt_core.magics.raw import Raw
from lt_core.magics.scope import own, picked


@magics_class
class Torchrun(Magics):
    """The magic of one notebook. `make`: what makes a group of ranks."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell, make: Callable[..., Group] = Group) -> None:
        super().__init__(shell)
        self.held, self._raw = Held(self._owner, make), Raw(shell)

    @arguments
    @no_var_expand  # ours, in scope.py, refuses names that are not there
    @line_cell_magic
    def torchrun(self, line: str = "", cell: str | None = None) -> None:
        """Run the cell on several ranks: real processes under torchrun, which stay and keep their variables.

        %%torchrun -n 4               %torchrun status        who holds ranks
        comm.all_reduce(x)            %torchrun restart       new processes, without variables
        x                             %torchrun stop [--all]  end them; else they end with the notebook

        A cell finds comm, rank, torch and lt (lt_core), and what cells before it have made on the ranks. What ranks
        print is shown by rank, and the value of the last expression. In the line, {x} and $x stand for the value of
        the kernel's variable x, {{, }} and $$ for the signs; the body is sent as it is. Lines are counted as the
        notebook counts them, the one of %%torchrun too.
        """
        standing = self.held.group.size if self.held.group else 0
        options = read(Torchrun.torchrun, line, self.shell.user_ns, standing)
        if cell is None and options.command:
            print(commands.obey(options, self.held))
        elif cell is None or options.command:
            what = "%torchrun takes a command, %%torchrun a cell below it"
            raise UserError(what, line.strip() or "neither", attempt="%torchrun status")
        else:
            self._run(options, self._raw.body(line, cell), self._screen(line, cell))

    def close(self) -> None:
        """End the ranks."""
        self.held.stop()
        self._raw.close()

    def _run(self, options: Options, text: str, screen: Screen) -> None:
        given = picked(options.given, self.shell.user_ns)
        asked = self._cell(text, options, given)
        with screen:
            if options.save:
                screen.say(self._saved(asked, options))
            cuda.watched().tell(lambda text: screen.show(Line((), "err", text)))
            with self._group(options, screen) as group:
                outcome = self._outcome(group, asked, options.expect, screen)
            if outcome:
                screen.values(outcome.values)
                self.shell.user_ns.update(outcome.outs)

    def _cell(self, text: str, options: Options, given: Mapping[str, object]) -> Cell:
        """What the ranks are asked, under the number that the notebook shows beside it: tracebacks tell cells apart."""
        name, first_line = f"<cell {self._raw.number}>", self._raw.first_line(text)
        return Cell(text, name, options.ranks, given, options.wanted, options.timeout_s, first_line=first_line)

    def _saved(self, cell: Cell, options: Options) -> str:
        """Write the script, and say so."""
        try:
            return script.save(Path(options.save), cell, options, self.held.size(options))
        except SyntaxError as error:
            raise CellSyntaxError(error) from None

    def _outcome(self, group: Group, cell: Cell, expected: str, screen: Screen) -> Outcome | None:
        """What the cell gives; nothing where it failed as it was to."""
        try:
            outcome = group.run(cell, screen.show, screen.progress)
        except expect.RAISED as error:
            said = expect.came(expected, error) if expected else ""
            if said:
                screen.say(said)
                return None
            if isinstance(error, SyntaxError):
                raise CellSyntaxError(error) from None
            raise hinted(error, own(self.shell)) from error.__cause__
        if expected:
            raise expect.missing(expected)
        return outcome

    @contextmanager
    def _group(self, options: Options, screen: Screen) -> Iterator[Group]:
        if not options.fresh:
            yield self.held.take(options, screen)
            return
        group = self.held.fresh(options, screen)
        try:
            yield group
        finally:
            group.stop()

    def _screen(self, line: str, cell: str) -> Screen:
        if not self.shell.has_trait("kernel"):
            return Printed()
        return Live(Output(self.shell.display_pub, alone=self._raw.is_cell(line, cell)))

    def _owner(self) -> str:
        """The notebook, as the server or the editor that has opened it calls it."""
        name = host.environment("JPY_SESSION_NAME") or str(self.shell.user_ns.get("__vsc_ipynb_file__", ""))
        return Path(name).name or f"the kernel of process {os.getpid()}"
