"""`./run attack`: a program that attacks a service of its own, on loopback only, and tells what it found."""
