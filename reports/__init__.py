"""EU AI Act and MiCA reports: evidence and gaps, never a verdict."""
