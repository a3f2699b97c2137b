"""The attack: hostile calls, models, files, kills and races, each against its contract."""
