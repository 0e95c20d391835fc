"""A report's files, the signed manifest over them, and their verification."""
