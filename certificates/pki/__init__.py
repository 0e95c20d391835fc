"""X.509 as pure functions: certificates, names, extensions, serial numbers, reasons, signatures."""
