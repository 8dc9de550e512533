"""What the values of flags look like; argparse tells the message of an ArgumentTypeError beside the flag's name."""

import argparse


def boolean(text: str) -> bool:
    if text.lower() in ("true", "1", "on"):
        return True
    if text.lower() in ("false", "0", "off"):
        return False
    raise argparse.ArgumentTypeError(f"'{text}' is neither true nor false")


def count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a number >= 0")
    return int(text)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number >= 1")
    return int(text)


def port_number(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port from 0 to 65535")
    return int(text)


def add_bool(group: "argparse._ArgumentGroup", flag: str, *, default: bool, text: str) -> None:
    """Add a flag that is true when it is given without a value."""
    group.add_argument(
        flag,
        type=boolean,
        nargs="?",
        const=True,
        default=default,
        metavar="BOOL",
        help=f"{text} ({str(default).lower()})",
    )
