"""The keys that sign delegation tokens: their life in the HSM and their public halves in memory."""
