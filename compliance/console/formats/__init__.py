"""The console's date formats; Django finds them through FORMAT_MODULE_PATH."""
