"""The commands of the laboratory: one module each."""
