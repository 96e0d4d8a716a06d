"""How `make lab` starts JupyterLab: on the labs, the first one open, one document at a time (overrides.json).

What JupyterLab does by itself stays: it listens on this machine only, and asks for its token.
"""

from pathlib import Path

LABS = Path(__file__).resolve().parent.parent
FIRST = min(LABS.glob("[0-9]*.ipynb"), default=None)

c = get_config()  # type: ignore[name-defined]  # noqa: F821  (JupyterLab hands it to the file)
c.ServerApp.root_dir = str(LABS)
c.LabApp.app_settings_dir = str(LABS / "settings")
c.ServerApp.allow_root = True  # in a container there is often nobody else
if FIRST:
    c.LabApp.default_url = f"/lab/tree/{FIRST.name}"
