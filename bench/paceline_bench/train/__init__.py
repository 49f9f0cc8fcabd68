"""Training of the documents' networks: `paceline train`, and its replay. Needs torch."""
