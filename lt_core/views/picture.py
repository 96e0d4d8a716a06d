"""The live picture: a figure that changes in place, and below it one line of text that is spoken when it changes.

kernel    figure as JSON, text --one message--> page: Plotly.react draws what differs; the line's text is replaced
plotly.js comes from the kernel, once a page, so that nothing is asked of another machine. (Plotly's own FigureWidget
sends it with every figure, takes seconds to import, and draws before it knows its width.)
"""

from __future__ import annotations

from functools import cache
from typing import Any

SHARED = """
// The promise of plotly.js, which the Library keeps and every picture of the page waits for.
const shared = globalThis.ltPlotly ??= (() => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
})();
"""
LIBRARY = (
    SHARED
    + """
async function load(model) {
  const url = URL.createObjectURL(new Blob([model.get("source")], { type: "text/javascript" }));
  try { await import(url); shared.resolve(globalThis.Plotly); }
  catch (error) { shared.reject(error); }
  finally { URL.revokeObjectURL(url); }
}
function initialize({ model }) {
  if (shared.asked) return;
  shared.asked = true;
  setTimeout(load, 50, model);  // once the widgets have met: anywidget gives each 2 s for that
}
export default { initialize };
"""
)
PICTURE = (
    SHARED
    + """
// JupyterLab takes arrows and Enter for its cells, also while a control has the focus: here they are the control's.
const KEYS = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Enter", " ", "Home", "End"]);

function render({ model, el }) {
  const plot = el.appendChild(document.createElement("div"));
  const line = el.appendChild(document.createElement("p"));
  let Plotly, width = 0;
  plot.setAttribute("role", "img");
  line.setAttribute("role", "status");  // the element stays and its text changes: else it would not be spoken
  line.setAttribute("aria-live", "polite");
  const say = () => {
    line.textContent = model.get("text");
    line.className = model.get("failed") ? "lt-line lt-failed" : "lt-line";
  };
  const draw = () => {
    if (!Plotly || !width) return;  // not on the page yet: there texts have no size
    const { data, layout } = JSON.parse(model.get("figure"));
    layout.uirevision ??= "kept";  // a view that was zoomed stays so
    plot.setAttribute("aria-label", model.get("title"));
    Plotly.react(plot, data, layout, { displaylogo: false });
  };
  const observer = new ResizeObserver(() => {
    if (plot.clientWidth === width) return;
    const drawn = width > 0;
    width = plot.clientWidth;
    drawn && width && Plotly ? Plotly.Plots.resize(plot) : draw();
  });
  const own = (event) => {
    if (!el.closest(".widget-vbox")?.contains(event.target)) return;
    const alone = !(event.shiftKey || event.ctrlKey || event.altKey || event.metaKey);
    event.target.toggleAttribute("data-lm-suppress-shortcuts", alone && KEYS.has(event.key));
  };
  model.on("change:text", say);
  model.on("change:failed", say);
  model.on("change:figure", draw);
  window.addEventListener("keydown", own, true);
  observer.observe(plot);
  say();
  shared.promise.then((loaded) => { Plotly = loaded; draw(); });
  return () => {
    window.removeEventListener("keydown", own, true);
    observer.disconnect();
    Plotly?.purge(plot);
  };
}
export default { render };
"""
)
STYLE = """
.lt-line { margin: 4px 12px 8px; max-width: 84ch; line-height: 1.5; font-size: 14px; }
.lt-failed { font-weight: 600; border-left: 4px solid #D55E00; padding-left: 8px; }
"""


@cache
def _kinds() -> tuple[type[Any], type[Any]]:
    import anywidget
    import traitlets

    class Library(anywidget.AnyWidget):
        """plotly.js on its way to the page; it is never displayed."""

        _esm = LIBRARY
        source = traitlets.Bytes().tag(sync=True)

    class Picture(anywidget.AnyWidget):
        """`figure` as JSON and its `title`; `text` is shown and spoken, as an error where it `failed`."""

        _esm, _css = PICTURE, STYLE
        figure = traitlets.Unicode().tag(sync=True)
        title = traitlets.Unicode().tag(sync=True)
        text = traitlets.Unicode().tag(sync=True)
        failed = traitlets.Bool(False).tag(sync=True)

    return Library, Picture


@cache
def _library() -> Any:
    """The one carrier of plotly.js in this kernel; a page that is reloaded gets it again."""
    from plotly.offline import get_plotlyjs

    return _kinds()[0](source=get_plotlyjs().encode())


def picture() -> Any:
    """A live picture, still empty: a widget with `figure` (JSON), `title`, `text` and `failed`."""
    _library()
    return _kinds()[1]()
