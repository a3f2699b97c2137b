"""Attacks on the library: hostile input, damaged files, kills and races, from seeds.

Each module has functions ``(count, seed)`` that try so many attacks and return a line for each
that did harm, with what is needed to repeat it. A few of each are tried in the tests beside them.
"""
