"""Pages of the console that show rows of many rooms."""
