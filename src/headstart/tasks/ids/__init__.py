"""Ids of tasks: any column of hashable values, and the position each id has.

An id is the same in memory, on disk and on the command line: `canonical` says by which value it
is known, `read_ids` does that for whole columns of any library, `IdIndex` gives it a position.
"""

from headstart.tasks.ids.canonical import Key, canonical
from headstart.tasks.ids.column import Column, Ids, Positions, encode, id_array, read_ids
from headstart.tasks.ids.hashes import hash_ids
from headstart.tasks.ids.index import IdIndex, warn_other_kinds

__all__ = [
    "canonical",
    "Key",
    "read_ids",
    "Column",
    "Ids",
    "Positions",
    "encode",
    "id_array",
    "IdIndex",
    "warn_other_kinds",
    "hash_ids",
]
