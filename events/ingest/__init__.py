"""Store events as they arrive: read, group, score, insert, react to high risk."""
