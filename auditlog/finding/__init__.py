"""Finding entries in the console by what they say and by who acted, and their places in the tree."""
