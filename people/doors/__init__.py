"""What signing in and out rests on: sessions, attempts, lockout, second factors, one-time links."""
