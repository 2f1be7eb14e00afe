"""Parses MATCH_RECOGNIZE clauses: sections in their order, each a list of the host's expressions or a few keywords."""

from __future__ import annotations

from collections.abc import Sequence

from hamlet.errors import Span, near_miss
from hamlet.frontend.reports import Reports
from hamlet.patterns.clause.pattern import PatternParser
from hamlet.patterns.clause.scan import Token
from hamlet.patterns.clause.tree import (
    Clause,
    Concatenation,
    Exclusion,
    Expression,
    Named,
    Ordering,
    RowPattern,
    Rows,
    Skip,
    nodes,
)

ORDER = (
    "PARTITION BY",
    "ORDER BY",
    "MEASURES",
    "ROWS PER MATCH",
    "AFTER MATCH",
    "PATTERN",
    "WITHIN",
    "SUBSET",
    "DEFINE",
)
_OPENING, _CLOSING = "([{", ")]}"
_CONNECTORS = {"AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "BY", "AS", "THEN", "ELSE", "WHEN", "CASE"}
_BEHIND_A_NAME = {*_CONNECTORS, "ASC", "DESC", "NULLS", "COLLATE", "SIMILAR", "GLOB", "MEASURES", "DEFINE", "SUBSET"}
_NO_END = {"MEASURES", "DEFINE", "SUBSET", "WITHIN"}  # keywords of a section that are one word


class ClauseParser:
    """Reads one clause.

    Parameters
    ----------
    reports : Reports
        Of the whole text.
    tokens : sequence of Token
        Of the whole text; row patterns are left out.
    place : int
        Of the keyword MATCH_RECOGNIZE.
    source : Span
        The table before it.
    bodies : mapping of int to Span
        The row patterns by where the parenthesis before them ends.
    """

    def __init__(
        self, reports: Reports, tokens: Sequence[Token], place: int, source: Span, bodies: dict[int, Span]
    ) -> None:
        self._reports, self._tokens, self._source, self._bodies = reports, tokens, source, bodies
        self._open = place + 1
        self.end = closing(tokens, self._open)  # the place of the closing parenthesis, or the number of tokens
        self._span = tokens[place].span.to(tokens[min(self.end, len(tokens) - 1)].span)
        self._sections: dict[str, tuple[int, int]] = {}  # first token behind the keywords, and behind the last one
        self._heads: dict[str, int] = {}
        self._unread = ""  # a pattern that is wrong, so that not all of its variables are known

    def parse(self) -> Clause | None:
        """The clause, None where something is missing that nothing can be said without; errors are reported."""
        if self.end == len(self._tokens):
            self._reports.error(
                "MATCH_RECOGNIZE ( is not closed", self._tokens[self._open].span, "write ) behind DEFINE"
            )
            return None
        known = len(self._reports.errors)
        self._split()
        if "PATTERN" not in self._sections:
            if len(self._reports.errors) == known:
                self._reports.error(
                    "the clause has no PATTERN", self._tokens[self.end].span, "write PATTERN (a b+) DEFINE b AS ..."
                )
            return None
        pattern, variables, pattern_span = self._pattern()
        if "DEFINE" not in self._sections:
            first = next(iter(variables.values()), "a")
            self._reports.error(
                "the clause has no DEFINE", self._tokens[self.end].span, f"write DEFINE {first} AS true"
            )
        subsets = self._subsets(variables)
        skip, skip_to = self._skip(variables, subsets)
        rows = self._rows(pattern)
        if rows == "one" and not {"MEASURES", "PARTITION BY"} & self._sections.keys():
            self._reports.error(
                "the clause gives no column: ONE ROW PER MATCH shows what PARTITION BY and MEASURES name",
                self._span,
                "write MEASURES COUNT(*) AS rows, or ALL ROWS PER MATCH",
            )
        return Clause(
            span=self._span,
            source=self._source,
            partition=tuple(self._expressions("PARTITION BY")),
            order=tuple(self._ordering(first, last) for first, last in self._items("ORDER BY")),
            measures=tuple(self._measures()),
            rows=rows,
            skip=skip,
            skip_to=skip_to,
            pattern=pattern,
            variables=variables,
            within=self._within(),
            subsets=subsets,
            definitions=self._definitions(variables, subsets),
            pattern_span=pattern_span,
        )

    # Sections.

    def _split(self) -> None:
        """Find where sections begin; report those that come twice, in another order, and what is none."""
        place, last = self._open + 1, ""
        while place < self.end:
            head = self._head(place)
            if head is None:
                if not last:
                    self._reports.error(
                        f"expected a section of the clause, not {self._reports.quote(self._tokens[place].span)}",
                        self._tokens[place].span,
                        f"the sections are {', '.join(ORDER)}, in this order",
                    )
                    return
                place = self._over(place)
                continue
            name, length = head
            span = self._tokens[place].span.to(self._tokens[place + length - 1].span)
            if name == "PATTERN" and self._is_modifier(place - 1):
                self._sections[last] = (self._sections[last][0], place - 1)
            if name in self._sections:
                self._reports.error(f"{name} comes twice", span, "write it once")
            elif last and ORDER.index(name) < ORDER.index(last):
                self._reports.error(f"{name} must stand before {last}", span, f"the order is {', '.join(ORDER)}")
            first = place + length
            place = first
            if name == "PATTERN":
                place = closing(self._tokens, first) + 1
                if place < self.end and self._head(place) is None:
                    self._reports.error(
                        f"expected WITHIN, SUBSET or DEFINE behind the pattern, not "
                        f"{self._reports.quote(self._tokens[place].span)}",
                        self._tokens[place].span,
                    )
                    self._sections.setdefault(name, (first, place))
                    while place < self.end and self._head(place) is None:
                        place = self._over(place)
                    last = name
                    continue
            while place < self.end and (self._head(place) is None or (place == first and name != "AFTER MATCH")):
                if place == first and self._head(place) is not None and self._ends(place):
                    break  # a section without content; a column of such a name would be followed by something
                place = self._over(place)
            self._sections.setdefault(name, (first, place))
            self._heads.setdefault(name, first - 1)
            last = name

    def _is_modifier(self, place: int) -> bool:
        """Whether a token says where windows look for a pattern, which is reported."""
        token, before = self._tokens[place], self._tokens[place - 1]
        found = token.is_word("INITIAL", "SEEK") and before.kind != "other" and not before.is_word("BY")
        if found:
            self._reports.error(
                f"{token.text} is for patterns in windows, not for MATCH_RECOGNIZE", token.span, "leave it out"
            )
        return found

    def _ends(self, place: int) -> bool:
        """Whether a keyword is one of the sections for certain: its other words follow."""
        name, length = self._head(place) or ("", 0)
        return length > 1 or name == "PATTERN"

    def _over(self, place: int) -> int:
        """The place behind a token, or behind the parentheses that it opens."""
        if self._tokens[place].kind == "other" and self._tokens[place].text in _OPENING:
            return min(closing(self._tokens, place) + 1, self.end)
        return place + 1

    def _words(self, place: int, *words: str) -> bool:
        return place + len(words) <= self.end and all(
            self._tokens[place + offset].is_word(word) for offset, word in enumerate(words)
        )

    def _head(self, place: int) -> tuple[str, int] | None:
        """The section that begins at a token and how many tokens its keywords are."""
        if self._tokens[place].kind != "word":
            return None
        before = self._tokens[place - 1]
        for words in (("PARTITION", "BY"), ("ORDER", "BY"), ("AFTER", "MATCH")):
            if self._words(place, *words):
                return " ".join(words), 2
        for word in ("ONE", "ALL"):
            if self._words(place, word, "ROW" if word == "ONE" else "ROWS", "PER", "MATCH"):
                return "ROWS PER MATCH", 4
        after = self._tokens[place + 1] if place + 1 <= self.end else None
        if self._words(place, "PATTERN") and after is not None and after.span.end in self._bodies:
            return "PATTERN", 1
        word = self._tokens[place].text.upper()
        if word not in _NO_END or after is None or (word == "WITHIN" and after.is_word("GROUP")):
            return None
        if before.kind == "other" and before.text not in (")", "]", "}", "*", "("):
            # behind a comma, an operator or a dot stands a name, unless something follows that follows no name
            begins = before.text == "," and after.is_identifier and after.text.upper() not in _BEHIND_A_NAME
            return (word, 1) if begins else None
        if before.kind == "word" and before.text.upper() in _CONNECTORS:
            return None
        if after.kind == "other" and after.text not in ("(", "-", "+", "[", "{", "^", "$", ")"):
            return None
        return None if after.is_word("ASC", "DESC", "NULLS") else (word, 1)

    def _items(self, section: str) -> list[tuple[int, int]]:
        """The items of a list, as places of tokens; empty ones are reported."""
        if section not in self._sections:
            return []
        return self._split_commas(*self._sections[section], section)

    def _split_commas(self, first: int, last: int, section: str) -> list[tuple[int, int]]:
        found, start, place = [], first, first
        while place < last:
            if self._tokens[place].kind == "other" and self._tokens[place].text == ",":
                found.append((start, place))
                start = place + 1
            place = self._over(place)
        found.append((start, last))
        full = [item for item in found if item[0] < item[1]]
        if len(full) < len(found):
            empty = next(item for item in found if item[0] >= item[1])
            at = min(empty[0], self.end)
            what = "an expression" if section != "SUBSET" else "a subset"
            trailing = empty[0] == last and len(found) > 1
            span = self._tokens[at - 1 if trailing else at].span
            self._reports.error(
                f"{section} ends with a comma" if trailing else f"{section} lacks {what}",
                span,
                "leave the comma out" if trailing else None,
            )
        return full

    def _expression(self, first: int, last: int) -> Expression:
        span = self._tokens[first].span.to(self._tokens[last - 1].span)
        return Expression(self._reports.text[span.start : span.end], span)

    def _expressions(self, section: str) -> list[Expression]:
        return [self._expression(first, last) for first, last in self._items(section)]

    def _ordering(self, first: int, last: int) -> Ordering:
        nulls_first = descending = False
        if last - first > 2 and self._words(last - 2, "NULLS") and self._tokens[last - 1].is_word("FIRST", "LAST"):
            nulls_first = self._tokens[last - 1].is_word("FIRST")
            last -= 2
        if last - first > 1 and self._tokens[last - 1].is_word("ASC", "DESC"):
            descending = self._tokens[last - 1].is_word("DESC")
            last -= 1
        return Ordering(self._expression(first, last), descending, nulls_first)

    def _measures(self) -> list[Named]:
        found: list[Named] = []
        for first, last in self._items("MEASURES"):
            if last - first < 3 or not self._tokens[last - 2].is_word("AS") or not self._tokens[last - 1].is_identifier:
                whole = self._expression(first, last)
                named = last - first > 1 and self._tokens[last - 1].is_identifier and self._tokens[last - 2].ends_value
                value = self._expression(first, last - 1) if named else whole
                meant = self._tokens[last - 1].text if named else "name"
                self._reports.error("a measure needs a name", whole.span, f"{value.text[:60]} AS {meant}")
                continue
            name = self._tokens[last - 1]
            if any(each.name.lower() == name.text.lower() for each in found):
                self._reports.error(f"there are two measures {name.text!r}", name.span, "give one of them another name")
            found.append(Named(name.text, self._expression(first, last - 2), name.span))
        return found

    def _rows(self, pattern: RowPattern) -> Rows:
        if "ROWS PER MATCH" not in self._sections:
            return "one"
        first, last = self._sections["ROWS PER MATCH"]
        said = " ".join(each.text.upper() for each in self._tokens[first:last])
        one = self._tokens[first - 4].is_word("ONE")
        forms: dict[str, Rows] = {
            "SHOW EMPTY MATCHES": "show",
            "OMIT EMPTY MATCHES": "omit",
            "WITH UNMATCHED ROWS": "unmatched",
        }
        if not said:
            return "one" if one else "show"
        if one or said not in forms:
            span = self._tokens[first].span.to(self._tokens[last - 1].span)
            self._reports.error(
                f"{self._reports.quote(span)} is not known behind {'ONE ROW' if one else 'ALL ROWS'} PER MATCH",
                span,
                "ALL ROWS PER MATCH goes with SHOW EMPTY MATCHES, OMIT EMPTY MATCHES or WITH UNMATCHED ROWS",
            )
            return "one" if one else "show"
        if said == "WITH UNMATCHED ROWS" and any(isinstance(each, Exclusion) for each in nodes(pattern)):
            self._reports.error(
                "WITH UNMATCHED ROWS shows every row, and the pattern excludes some with {- -}",
                self._tokens[first].span.to(self._tokens[last - 1].span),
                "leave one of them out",
            )
        return forms[said]

    def _skip(
        self, variables: dict[str, str], subsets: dict[str, tuple[str, tuple[str, ...]]]
    ) -> tuple[Skip, str | None]:
        if "AFTER MATCH" not in self._sections:
            return "past", None
        first, last = self._sections["AFTER MATCH"]
        tokens = self._tokens[first:last]
        said = [each.text.upper() if each.kind == "word" else "" for each in tokens]
        if said == ["SKIP", "PAST", "LAST", "ROW"]:
            return "past", None
        if said == ["SKIP", "TO", "NEXT", "ROW"]:
            return "next", None
        plain = len(said) == 3 or (len(said) == 4 and said[2] in ("FIRST", "LAST"))
        if said[:2] == ["SKIP", "TO"] and plain and tokens[-1].is_identifier:
            name = tokens[-1].text.lower()
            self._known(name, tokens[-1], [*variables, *subsets])
            return ("first" if len(said) == 4 and said[2] == "FIRST" else "last"), name
        span = self._tokens[self._heads["AFTER MATCH"] - 1].span.to(self._tokens[max(first, last) - 1].span)
        self._reports.error(
            f"{self._reports.quote(span)} is no skip",
            span,
            "write AFTER MATCH SKIP PAST LAST ROW, TO NEXT ROW, TO FIRST a or TO LAST a",
        )
        return "past", None

    def _known(self, name: str, token: Token, names: Sequence[str]) -> bool:
        if name in names or name in self._unread:
            return name in names
        near = near_miss(name, names)
        hint = f"did you mean {near}?" if near else f"variables of the pattern: {', '.join(names)}"
        self._reports.error(f"the pattern has no variable {token.text!r}", token.span, hint)
        return False

    def _pattern(self) -> tuple[RowPattern, dict[str, str], Span]:
        first, _ = self._sections["PATTERN"]
        body = self._bodies[self._tokens[first].span.end]
        parser = PatternParser(self._reports, body)
        known = len(self._reports.errors)
        found = parser.parse()
        if len(self._reports.errors) > known:
            self._unread = self._reports.text[body.start : body.end].lower()
        return (Concatenation(()) if self._unread else found), parser.variables, body

    def _within(self) -> Expression | None:
        if "WITHIN" not in self._sections:
            return None
        first, last = self._sections["WITHIN"]
        if first >= last:
            self._reports.error("WITHIN needs a duration", self._tokens[first - 1].span, "WITHIN INTERVAL '1' HOUR")
            return None
        if "ORDER BY" not in self._sections:
            self._reports.error(
                "WITHIN needs ORDER BY: its first column is the time", self._tokens[first - 1].span, "ORDER BY ts"
            )
        elif any(each.descending for each in self._first_ordering()):
            self._reports.error(
                "WITHIN needs a first ORDER BY column that ascends", self._tokens[first - 1].span, "leave DESC out"
            )
        return self._expression(first, last)

    def _first_ordering(self) -> list[Ordering]:
        known = list(self._reports.errors)
        found = [self._ordering(first, last) for first, last in self._items("ORDER BY")[:1]]
        self._reports.errors[:] = known
        return found

    def _subsets(self, variables: dict[str, str]) -> dict[str, tuple[str, tuple[str, ...]]]:
        found: dict[str, tuple[str, tuple[str, ...]]] = {}
        for first, last in self._items("SUBSET"):
            tokens = self._tokens[first:last]
            marks = [each.text for each in tokens[1:]]
            if len(tokens) < 5 or not tokens[0].is_identifier or marks[:2] != ["=", "("] or marks[-1] != ")":
                span = tokens[0].span.to(tokens[-1].span)
                self._reports.error(f"{self._reports.quote(span)} is no subset", span, "SUBSET u = (a, b)")
                continue
            name = tokens[0].text.lower()
            if name in variables or name in found:
                what = "a variable of the pattern" if name in variables else "another subset"
                self._reports.error(f"subset {tokens[0].text!r} has the name of {what}", tokens[0].span)
            members = []
            for begin, end in self._split_commas(first + 3, last - 1, "SUBSET"):
                member = self._tokens[begin]
                if end - begin != 1 or not member.is_identifier:
                    self._reports.error("a subset consists of variables", member.span, "SUBSET u = (a, b)")
                elif self._known(member.text.lower(), member, list(variables)):
                    members.append(member.text.lower())
            found[name] = (tokens[0].text, tuple(dict.fromkeys(members)))
        return found

    def _definitions(
        self, variables: dict[str, str], subsets: dict[str, tuple[str, tuple[str, ...]]]
    ) -> dict[str, Named]:
        found: dict[str, Named] = {}
        for first, last in self._items("DEFINE"):
            token = self._tokens[first]
            if last - first < 3 or not token.is_identifier or not self._tokens[first + 1].is_word("AS"):
                whole = self._expression(first, last)
                self._reports.error(f"{self._reports.quote(whole.span)} is no definition", whole.span, "a AS condition")
                continue
            name = token.text.lower()
            if name in subsets:
                self._reports.error(f"{token.text!r} is a subset, which has no condition", token.span)
            elif name in found:
                self._reports.error(f"{token.text!r} has two conditions", token.span, "join them with AND")
            elif self._known(name, token, list(variables)):
                found[name] = Named(token.text, self._expression(first + 2, last), token.span)
        return found


def closing(tokens: Sequence[Token], place: int) -> int:
    """The place of the token that closes the one at `place`, or the number of tokens."""
    depth = 0
    while place < len(tokens):
        if tokens[place].kind == "other":
            depth += (tokens[place].text in _OPENING) - (tokens[place].text in _CLOSING)
            if depth == 0:
                return place
        place += 1
    return place
