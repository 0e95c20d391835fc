"""A witness of transparency logs (C2SP tlog-witness); needs neither the service nor its settings."""
