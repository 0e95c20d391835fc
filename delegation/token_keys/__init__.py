"""The keys that sign delegation tokens: in the HSM, and their public halves and recent tokens in memory."""
