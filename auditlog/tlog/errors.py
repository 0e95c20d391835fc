"""What can be wrong with the texts and proofs of a transparency log."""


class TlogError(ValueError):
    """Base of these errors; the text says what is wrong."""


class Malformed(TlogError):
    """The text is not in the format it should be in."""


class ProofInvalid(TlogError):
    """A Merkle proof does not lead to the root, or has the wrong length."""


class SignatureInvalid(TlogError):
    """A signature of a known key does not verify, or a signature that is needed is missing."""
