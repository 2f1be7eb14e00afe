"""Row patterns in SQL: ``MATCH_RECOGNIZE`` (ISO/IEC 9075-2:2016) in process.

Source: ISO/IEC TR 19075-5:2021, Row pattern recognition in SQL.
"""

from hamlet.output.result import Results
from hamlet.patterns.match.run import sql

__all__ = ["Results", "sql"]
