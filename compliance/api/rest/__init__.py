"""Adapters to REST framework: parsers, renderers, fields, permissions, throttles, base views, the schema."""
