from typing import Any

float64: Any
int64: Any
intp: Any
void: Any

voidptr: Any
