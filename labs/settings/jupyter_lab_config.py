"""How `ltlab lab` starts JupyterLab: in a learner's folder, the first lab open, one document at a time (overrides).

What JupyterLab does by itself stays: it listens on this machine only, and asks for its token.
"""

import re
from pathlib import Path

FIRST = min((path.name for path in Path.cwd().iterdir() if re.fullmatch(r"\d\d_\w+\.ipynb", path.name)), default=None)

c = get_config()  # type: ignore[name-defined]  # noqa: F821  (JupyterLab hands it to the file)
c.ServerApp.root_dir = str(Path.cwd())
c.LabApp.app_settings_dir = str(Path(__file__).resolve().parent)
c.ServerApp.allow_root = True  # in a container there is often nobody else
if FIRST:
    c.LabApp.default_url = f"/lab/tree/{FIRST}"
