"""The command line."""

from headstart.cli.main import app

__all__ = ["app"]
