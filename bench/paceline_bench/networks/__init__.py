"""Networks that the laboratory trains and measures, by name."""
