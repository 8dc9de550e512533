"""What fuzzing looks for."""


class FindingError(AssertionError):
    """The program did something that no input may make it do."""
