"""Models on disk: folders of plain files, which no reader has to trust."""

from headstart.store.arrays import BLOCK, StoredArray, StoreError, damaged
from headstart.store.folder import check_ours, read_model, read_versions, write_model
from headstart.store.ids import StoredIds, pack_ids

__all__ = [
    "BLOCK",
    "StoreError",
    "StoredArray",
    "StoredIds",
    "check_ours",
    "damaged",
    "pack_ids",
    "read_model",
    "read_versions",
    "write_model",
]
