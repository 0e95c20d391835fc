"""Keys in PKCS#11 tokens, through a module that this process loads."""
