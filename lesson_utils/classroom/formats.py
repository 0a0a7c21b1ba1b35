"""Numbers as people write them: in titles, labels and alternative texts."""

import math
from collections.abc import Iterable


def minus(text: str) -> str:
    """Put a real minus sign: −1 for -1."""
    return text.replace("-", "−")


def signed(n: int) -> str:
    """Write an integer with its sign: +10 or −1."""
    return minus(f"{n:+d}")


def short(x: float) -> str:
    """Write a positive number to two figures: 100 and 0.0032, not 1e+02 and 0.00317."""
    rounded = float(f"{x:.2g}")
    return f"{rounded:g}" if rounded >= 1e-4 else "<0.0001"


def power(x: float) -> str:
    """Write a positive number as a power of ten, 2·10⁻⁴; from 0.01 to 1000 to two figures."""
    if 0.01 <= x < 1000:
        return f"{float(f'{x:.2g}'):g}"
    digit, exponent = f"{x:.0e}".split("e")
    return f"{digit}·10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def three_figures(x: float) -> str:
    """Write a positive number to three figures: 6.28, 199, 47,100."""
    return f"{x:,.{max(0, 2 - int(math.log10(x)))}f}" if x < 1000 else f"{float(f'{x:.3g}'):,.0f}"


def large(n: float) -> str:
    """Write a large number with a letter for thousands, millions or billions: 18.9 M, 2.4 G."""
    size, unit = next(((s, u) for s, u in ((1e9, " G"), (1e6, " M"), (1e3, " k")) if n >= s), (1, ""))
    return f"{n / size:.3g}{unit}" if n < 999.5 * size else f"{n / size:.0f}{unit}"


def degrees(angle: float) -> str:
    """Write an angle: 172°, −3.6°, 0.054°."""
    return (
        minus(f"{angle:z.0f}" if abs(angle) >= 10 else f"{angle:z.1f}" if abs(angle) >= 0.1 else f"{angle:z.2g}") + "°"
    )


def each(names: Iterable[object], numbers: Iterable[float], form: str = ".2f") -> str:
    """Write each name with its number: "cat 0.61, street 0.12"."""
    return ", ".join(f"{name} {minus(f'{number:{form}}')}" for name, number in zip(names, numbers, strict=True))
