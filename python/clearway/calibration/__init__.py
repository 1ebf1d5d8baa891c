"""Constants of a collective library, read from the logs of its tests."""
