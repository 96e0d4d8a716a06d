"""Pictures of what was recorded, each with its words; this floor knows `base` alone, and no technique.

| file | what it draws | from |
|---|---|---|
| style | the template, the palette, the fills, the ticks | - |
| show | one call: the picture, and below it its words; one HTML file | Figure |
| lanes, gantt | when each rank did what | Trace |
"""

from lt_core.views.gantt import gantt
from lt_core.views.show import Figure, show, to_html

__all__ = ["Figure", "gantt", "show", "to_html"]
