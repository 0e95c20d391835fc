"""What a report says: the regulations, the evidence, the document."""
