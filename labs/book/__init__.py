"""make book: the solution notebooks as static pages, one file each, that need no script and ask for nothing.

| file | idea |
|---|---|
| `__main__` | which pages, and where they are written |
| prose | a lab's Markdown as HTML: headings to jump to, links between labs, pictures inside |
| still | what a page may not hold: scripts, and whatever a browser would fetch |
| template/ | nbconvert's template for a lab, the list of labs, and how both look |
"""
