"""Row patterns as rows come: `Matcher`."""

from hamlet.patterns.match.matcher import Matcher

__all__ = ["Matcher"]
