"""Upper bounds of the buckets in which replicas count the durations of requests, in microseconds.

The runtime's histograms have them, and objectives of services can only name one of them.
"""

EDGES_US = (
    50, 100, 200, 300, 500, 750,
    1_000, 1_500, 2_000, 3_000, 5_000, 7_500,
    10_000, 15_000, 20_000, 30_000, 50_000, 75_000,
    100_000, 150_000, 200_000, 300_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
)  # fmt: skip
