"""Reviews of access: what agents may do beside what they use, decided on by a person, on a signed record."""
