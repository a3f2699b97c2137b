"""Choosing reg and step by validation tasks, online."""

from headstart.selection.online import (
    Pair,
    RegSelection,
    Selection,
    select_online,
    select_reg,
)

__all__ = ["Pair", "RegSelection", "Selection", "select_online", "select_reg"]
