"""What the command line shows as a default, and the package uses: here, so that help needs no data frames."""

KEEPS_UP = 0.98
"""What a network must deliver of what arrives for the load to be sustained, where nothing else is said: all but 2%."""
