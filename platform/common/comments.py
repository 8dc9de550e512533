"""What people may say with what they do. Pure."""

from common.errors import InvalidInput

MAX_COMMENT = 1000


def check_comment(comment: str) -> None:
    """Raise InvalidInput for a comment that is too long or cannot be printed."""
    if len(comment) > MAX_COMMENT or not comment.replace("\n", "").isprintable():
        raise InvalidInput(
            f"comment has {len(comment)} characters; expected at most {MAX_COMMENT}, all of them printable",
            field="comment",
        )
