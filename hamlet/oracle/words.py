"""Patterns as languages of marked words, for the oracle.

A word is a tuple of variables. NOT N spells the empty word and leaves a mark: N stands in that gap. A word of n
variables has n + 1 gaps (before the first, between any two, after the last); putting two words together joins the
marks of the gap where they meet. Everything else is as in regular expressions. Source: docs/language.md.
"""

from __future__ import annotations

import functools

from hamlet.language.query import Alternation, Atom, Conjunction, Negation, Pattern, Repetition, Sequence

Word = tuple[str, ...]
Gaps = tuple[frozenset[Pattern], ...]  # per gap, the negated patterns that stand in it

_EMPTY: Gaps = (frozenset(),)


def _join(left: Gaps, right: Gaps) -> Gaps:
    return (*left[:-1], left[-1] | right[0], *right[1:])


@functools.lru_cache(maxsize=1 << 18)
def spellings(pattern: Pattern, word: Word) -> frozenset[Gaps]:
    """Every way to spell a word with the pattern, as the guards that it puts into each gap.

    Returns
    -------
    frozenset of tuple
        Empty where the word is not in the language; more than one element where its guards are ambiguous. Guards are
        patterns, equal where their text is.
    """
    match pattern:
        case Atom(variable=variable):
            return frozenset([_EMPTY * 2]) if word == (variable,) else frozenset()
        case Negation(body=body):
            return frozenset([(frozenset([body]),)]) if word == () else frozenset()
        case Alternation(branches=branches):
            return frozenset().union(*(spellings(branch, word) for branch in branches))
        case Sequence(parts=parts):
            return _sequence_spellings(parts, word)
        case Repetition(body=body, low=low, high=high):
            return _repetition_spellings(body, low, high, word)
        case Conjunction():
            raise ValueError("AND stands at the top of a pattern only")


def _sequence_spellings(parts: tuple[Pattern, ...], word: Word) -> frozenset[Gaps]:
    if not parts:
        return frozenset([_EMPTY]) if word == () else frozenset()
    return frozenset(
        _join(first, rest)
        for cut in range(len(word) + 1)
        for first in spellings(parts[0], word[:cut])
        for rest in _sequence_spellings(parts[1:], word[cut:])
    )


def _repetition_spellings(body: Pattern, low: int, high: int | None, word: Word) -> frozenset[Gaps]:
    reached = frozenset([(0, _EMPTY)])  # how much of the word `times` repetitions can have spelled, and how
    found: set[Gaps] = set()
    seen = set()
    times = 0
    while True:
        if times >= low:
            found.update(gaps for end, gaps in reached if end == len(word))
            if reached in seen:
                return frozenset(found)  # more repetitions bring nothing new
            seen.add(reached)
        if times == high:
            return frozenset(found)
        reached = frozenset(
            (cut, _join(gaps, more))
            for end, gaps in reached
            for cut in range(end, len(word) + 1)
            for more in spellings(body, word[end:cut])
        )
        times += 1


@functools.lru_cache(maxsize=1 << 18)
def begins(pattern: Pattern, word: Word) -> bool:
    """Whether some word of the pattern begins with the given one (every pattern has at least one word)."""
    if word == ():
        return True
    match pattern:
        case Atom(variable=variable):
            return word == (variable,)
        case Negation():
            return False
        case Alternation(branches=branches):
            return any(begins(branch, word) for branch in branches)
        case Sequence(parts=parts):
            return any(
                _sequence_spellings(parts[:place], word[:cut]) and begins(part, word[cut:])
                for place, part in enumerate(parts)
                for cut in range(len(word))
            )
        case Repetition(body=body, low=low, high=high):
            fewer = Repetition(body, max(low - 1, 0), None if high is None else high - 1)
            return begins(body, word) or (
                high != 1
                and any(spellings(body, word[:cut]) and begins(fewer, word[cut:]) for cut in range(1, len(word)))
            )
        case Conjunction():
            raise ValueError("AND stands at the top of a pattern only")


@functools.lru_cache(maxsize=1 << 18)
def beginnings(pattern: Pattern, word: Word) -> frozenset[Gaps]:
    """Every way to spell a word as the beginning of a longer or equal one.

    Returns
    -------
    frozenset of tuple
        For each way the guards before each event of the word; what stands behind the last one is open yet. Empty where
        no word of the pattern begins so.
    """
    if word == ():
        return frozenset([()])
    match pattern:
        case Atom(variable=variable):
            return frozenset([_EMPTY]) if word == (variable,) else frozenset()
        case Negation():
            return frozenset()
        case Alternation(branches=branches):
            return frozenset().union(*(beginnings(branch, word) for branch in branches))
        case Sequence(parts=parts):
            return frozenset(
                _join(first, rest)
                for place, part in enumerate(parts)
                for cut in range(len(word))
                for first in _sequence_spellings(parts[:place], word[:cut])
                for rest in beginnings(part, word[cut:])
            )
        case Repetition(body=body, high=high):
            return _repetition_beginnings(body, high, word)
        case Conjunction():
            raise ValueError("AND stands at the top of a pattern only")


def _repetition_beginnings(body: Pattern, high: int | None, word: Word) -> frozenset[Gaps]:
    reached = frozenset([(0, _EMPTY)])  # what whole repetitions can have spelled, and how
    found: set[Gaps] = set()
    seen = set()
    times = 0
    while reached not in seen and times != high:
        seen.add(reached)
        found.update(
            _join(gaps, rest) for end, gaps in reached if end < len(word) for rest in beginnings(body, word[end:])
        )
        reached = frozenset(
            (cut, _join(gaps, more))
            for end, gaps in reached
            for cut in range(end, len(word) + 1)
            for more in spellings(body, word[end:cut])
        )
        times += 1
    return frozenset(found)
