from . import grunfeld as grunfeld
