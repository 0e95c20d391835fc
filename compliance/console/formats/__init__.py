"""How the console writes moments; found by Django through FORMAT_MODULE_PATH."""
