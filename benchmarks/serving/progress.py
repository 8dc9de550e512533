"""The lines that tell how a run goes on, one for each turn, below headings. Pure."""

_COLUMNS = ("round", "server", "model", "form", "calls at once", "requests a second", "processor time each")
_LINE = "{:>5}  {:10}  {:18}  {:8}  {:>13}  {:>17}  {:>19}"

HEADINGS = _LINE.format(*_COLUMNS)


def turn(number: int, server: str, model: str, form: str, calls: int, per_s: float, cpu_us: float) -> str:
    """Return the line of a server's turn."""
    return _LINE.format(number, server, model, form, calls, f"{per_s:,.1f}/s", f"{cpu_us:,.1f} us")


def alone(number: int, model: str, rows: int, per_s: float, cpu_us: float) -> str:
    """Return the line of ONNX Runtime alone, of which a request is one batch of so many rows."""
    return turn(number, "alone", model, f"{rows} rows", 1, per_s, cpu_us)
