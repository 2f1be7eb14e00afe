"""What a command has put in place of the user's words, which messages give back."""

from __future__ import annotations

import click

from hamlet.errors import HamletError

_WORDS = "hamlet.words"  # in the context of a command


def known_as(ours: str, users: str) -> None:
    """Where messages of this command say the one, the user shall read the other."""
    click.get_current_context().meta.setdefault(_WORDS, {})[ours] = users


def in_users_words(error: HamletError, context: click.Context) -> HamletError:
    """An error as it is said to the user."""
    for ours, users in context.meta.get(_WORDS, {}).items():
        error.args = tuple(each.replace(ours, users) if isinstance(each, str) else each for each in error.args)
    return error
