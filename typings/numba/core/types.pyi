from typing import Any

int64: Any
intp: Any
void: Any

voidptr: Any
