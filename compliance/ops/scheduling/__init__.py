"""Beat, of which several may run: one of them at a time sends the tasks that are due."""
