"""The pages of signing in and of one's own account: the topmost part of `people`."""
