"""The layers of a workload in words, as a graph, and as JSON: which queries ask about the rows of which."""

from __future__ import annotations

import json

from hamlet.language.meaning import Analysis
from hamlet.language.printing import name_text


def with_layers(shown: str, analysis: Analysis, shown_as: str) -> str:
    """What explains a workload, with its layers; unchanged where it has one only.

    Parameters
    ----------
    shown : str
        The rendering without layers.
    analysis : Analysis
    shown_as : {'text', 'dot', 'json'}

    Examples
    --------
    >>> from hamlet.planner.workload import Workload
    >>> text = "a: RETURN COUNT(*) PATTERN A WITHIN 1 s; b: RETURN COUNT(*) PATTERN a+ WITHIN 1 min"
    >>> print(with_layers("...", Workload.parse(text).analysis, "text"))
    layers
        1           a                reads the input
        2           b                reads the input and the rows of a
        queries of different layers share nothing but the input, whatever their classes
    <BLANKLINE>
    ...
    """
    if len(analysis.layers) < 2:
        return shown
    asked = {query.query.name: sorted(query.upstream) for query in analysis.queries}
    if shown_as == "json":
        layers = [[analysis.queries[place].query.name for place in layer] for layer in analysis.layers]
        return json.dumps(json.loads(shown) | {"layers": layers, "asks_about": asked}, indent=2) + "\n"
    if shown_as == "dot":
        places = {query.query.name: query.index for query in analysis.queries}
        pairs = [(places[name], places[query]) for query, names in asked.items() for name in names]
        edges = [f'  q{one}_0 -> q{other}_0 [label="rows", style=dashed];' for one, other in pairs]
        head, _, tail = shown.rstrip().rpartition("}")
        return "\n".join([head.rstrip(), *edges, "}" + tail]) + "\n"
    lines = ["layers"]
    for number, layer in enumerate(analysis.layers, 1):
        for place in layer:
            query = analysis.queries[place]
            rows = f" and the rows of {' and '.join(map(name_text, asked[query.query.name]))}" if query.upstream else ""
            lines.append(f"    {number:<12}{name_text(query.query.name):<16} reads the input{rows}")
    lines.append("    queries of different layers share nothing but the input, whatever their classes")
    return "\n".join([*lines, "", shown])
