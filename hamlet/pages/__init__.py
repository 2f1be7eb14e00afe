"""Self-contained HTML pages: what `hamlet explain --html` and `hamlet run --report` write.

A page is one file without anything from outside: its own style, script and data, and a content security policy that
forbids the rest. Names and values of a user's stream reach it only escaped, or as data that the script shows as text.
"""
