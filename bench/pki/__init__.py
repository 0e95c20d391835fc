"""Certificates and their keys: `./run bench pki` measures issuing, revoking and verifying them."""
