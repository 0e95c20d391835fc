"""The review inbox: events that wait for an officer's verdict, who reviews them, and what was decided."""
