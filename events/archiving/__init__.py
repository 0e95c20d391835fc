"""Archives of the partitions of events: written before one is dropped, and restored for queries."""
