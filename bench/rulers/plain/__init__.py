"""The plain way in Django: a view that reads a row."""
