"""How a request for a decision is read, decided and answered."""
