"""Results: their tables, how they are read and written, and what follows from them in numbers."""
