"""Models on disk: folders of plain files, which no reader has to trust."""

from headstart.store.arrays import BLOCK, StoredArray, StoreError, damaged
from headstart.store.folder import read_model, write_model
from headstart.store.ids import StoredIds, pack_ids

__all__ = [
    "BLOCK",
    "StoreError",
    "StoredArray",
    "StoredIds",
    "damaged",
    "pack_ids",
    "read_model",
    "write_model",
]
