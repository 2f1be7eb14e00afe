"""Which queries of a class are evaluated together: those that are alike as one, those with sums in common merged.

Source: HAMLET (SIGMOD'21) §3.1; `hamlet.planner.alike`, `hamlet.planner.beginnings`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hamlet.planner.aggregates import Layout
from hamlet.planner.alike import names_of, signature, united
from hamlet.planner.beginnings import find_merged
from hamlet.planner.compiled import CompiledQuery
from hamlet.planner.drafts import Draft
from hamlet.planner.merged_queries import MergedQuery

Names = Sequence[Mapping[str, str]]
Window = tuple[int, int]  # (within, slide) in ticks


@dataclass(frozen=True)
class Together:
    """What is evaluated together; queries are places in their class.

    Attributes
    ----------
    alike : tuple of tuple of int
        Every query is in one: the first leads, the others are like it.
    layouts : tuple of Layout
        Of each query; those that are alike have the components of all of them.
    merged queries : tuple of (tuple of int, MergedQuery)
        Leaders with sums in common, and what keeps these.
    """

    alike: tuple[tuple[int, ...], ...]
    layouts: tuple[Layout, ...]
    merged_queries: tuple[tuple[tuple[int, ...], MergedQuery], ...]

    def kept_once(self) -> Iterator[tuple[int, ...]]:
        """For each merged query the queries whose sums it keeps: leaders, and those that are like them."""
        for leaders, _ in self.merged_queries:
            yield tuple(sorted(place for each in self.alike if each[0] in leaders for place in each))


def names_in(queries: Sequence[CompiledQuery]) -> list[dict[str, str]]:
    """For each query names of its variables that all have in common."""
    return [names_of(each.analysed, each.templates[0]) for each in queries]


def alone(queries: Sequence[CompiledQuery]) -> Together:
    """Every query is evaluated by itself."""
    return Together(tuple((place,) for place in range(len(queries))), tuple(each.layout for each in queries), ())


def find_together(queries: Sequence[CompiledQuery], windows: Sequence[Window], names: Names) -> Together:
    """Find what is worth being evaluated together.

    Parameters
    ----------
    queries : sequence of CompiledQuery
        With or without tables, compiled each by itself.
    windows : sequence of (int, int)
    names : sequence of mapping of str to str
        From `names_in`.
    """
    groups: dict[Hashable, list[int]] = {}
    for place, each in enumerate(queries):
        key: Hashable = place
        if len(each.templates) == 1:
            key = signature(each.analysed, each.templates[0], names[place], windows[place], each.roles)
        groups.setdefault(key, []).append(place)
    layouts = [each.layout for each in queries]
    for places in groups.values():
        if len(places) > 1:
            common = united([layouts[place] for place in places], [names[place] for place in places])
            for place, layout in zip(places, common, strict=True):
                layouts[place] = layout
    fitting = [place for place, *_ in groups.values() if len(queries[place].templates) == 1]
    drafts = [
        Draft(each.analysed, each.templates[0], windows[place], each.roles, layouts[place])
        for place, each in ((place, queries[place]) for place in fitting)
    ]
    merged_queries = tuple(
        (tuple(fitting[number] for number in chosen), merged) for chosen, merged in find_merged(drafts)
    )
    return Together(tuple(map(tuple, groups.values())), tuple(layouts), merged_queries)
