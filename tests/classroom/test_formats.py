"""Numbers as people write them."""

import pytest

from lesson_utils.classroom import formats


@pytest.mark.parametrize(
    ("write", "shown"),
    [
        (formats.short, {100: "100", 0.00317: "0.0032", 22.63: "23", 7e-5: "<0.0001", 0: "<0.0001"}),
        (formats.power, {0.62: "0.62", 2.4e-4: "2·10⁻⁴", 3.6e-12: "4·10⁻¹²", 1.0: "1", 0.0096: "1·10⁻²"}),
        (formats.three_figures, {6.2832: "6.28", 62.83: "62.8", 628.3: "628", 47117.2: "47,100", 999.96: "1,000"}),
        (formats.large, {12.0: "12", 12_288: "12.3 k", 18_944_000: "18.9 M", 8.21e9: "8.21 G", 999_800: "1000 k"}),
        (formats.degrees, {171.9: "172°", -3.61: "−3.6°", 0.0543: "0.054°", 0.0: "0°"}),
        (formats.signed, {1: "+1", 12: "+12", -1: "−1", 0: "+0"}),
    ],
)
def test_numbers_are_written_as_people_do(write, shown):
    assert {n: write(n) for n in shown} == shown
