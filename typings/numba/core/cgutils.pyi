from typing import Any

def get_item_pointer(
    context: Any, builder: Any, array_type: Any, array: Any, indices: list[Any], wraparound: bool
) -> Any: ...

voidptr_t: Any

def unpack_tuple(builder: Any, values: Any) -> Any: ...
