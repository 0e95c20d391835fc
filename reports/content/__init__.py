"""The contents of reports: the regulations, the evidence, the document."""
