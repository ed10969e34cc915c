"""The names of other packages over a Tamis store."""
