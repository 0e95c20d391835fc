"""Issue a certificate: the key from the pool, the intent, the signature, what a broken-off try left."""
