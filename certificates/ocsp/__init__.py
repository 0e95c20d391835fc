"""OCSP (RFC 6960): responses, the responders that sign them, the endpoint."""
