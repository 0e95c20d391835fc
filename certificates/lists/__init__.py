"""Certificate revocation lists: their octets, when they are due, where they are stored."""
