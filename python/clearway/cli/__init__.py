"""The command `clearway`: a file for each command that has options of its own."""
