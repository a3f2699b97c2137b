"""Data that does not fit in memory: Parquet datasets in bounded batches of whole tasks."""

from headstart.parquet.blocks import Block
from headstart.parquet.cluster import clustered, grouped
from headstart.parquet.columns import (
    INDEX,
    as_labels,
    check_roles,
    first_wrong,
    is_id,
    is_label,
    is_numeric,
    to_float64,
    wanted_for,
    wrong_name,
)
from headstart.parquet.files import ParquetError
from headstart.parquet.inputs import Inputs
from headstart.parquet.plan import (
    PARTITION_ROWS,
    Partition,
    plan_partitions,
    plan_rows,
    read_partition,
)
from headstart.parquet.rows import ParquetRows
from headstart.parquet.shuffle import grouped_by, shuffled

__all__ = [
    "ParquetRows",
    "ParquetError",
    "INDEX",
    "as_labels",
    "check_roles",
    "first_wrong",
    "is_id",
    "is_label",
    "is_numeric",
    "to_float64",
    "wanted_for",
    "wrong_name",
    "Block",
    "Inputs",
    "clustered",
    "grouped",
    "grouped_by",
    "shuffled",
    "PARTITION_ROWS",
    "Partition",
    "plan_partitions",
    "plan_rows",
    "read_partition",
]
