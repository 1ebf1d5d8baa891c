"""What the command line shows as a default, and the package uses: here, so that help needs no data frames."""

KEEPS_UP = 0.98
"""What a network must deliver of what arrives for the load to be sustained, where nothing else is said: all but 2%."""

ONE_RUN = "95% of resamplings of one run's flows; what other seeds give it does not say"
"""What the interval of a single run is."""
