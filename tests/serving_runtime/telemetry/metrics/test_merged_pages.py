"""Metrics pages of several processes as one."""

from serving_runtime.telemetry.metrics.merged_pages import summed

ONE = """# HELP a_total Things
# TYPE a_total counter
a_total{model="m 1"} 2
# HELP t_us Times
# TYPE t_us histogram
t_us_bucket{le="1"} 1
t_us_bucket{le="+Inf"} 3
t_us_sum 4.5
t_us_count 3
# HELP process_start_time_seconds Start
# TYPE process_start_time_seconds gauge
process_start_time_seconds 100.5
"""
OTHER = """# HELP a_total Things
# TYPE a_total counter
a_total{model="m 1"} 5
a_total{model="n"} 1
# HELP t_us Times
# TYPE t_us histogram
t_us_bucket{le="1"} 2
t_us_bucket{le="+Inf"} 2
t_us_sum 0.25
t_us_count 2
# HELP process_start_time_seconds Start
# TYPE process_start_time_seconds gauge
process_start_time_seconds 101.5
# HELP b Only here
# TYPE b gauge
b +Inf
"""


def test_series_are_added_up_under_one_heading_each() -> None:
    assert (
        summed([ONE, OTHER])
        == """# HELP a_total Things
# TYPE a_total counter
a_total{model="m 1"} 7
a_total{model="n"} 1
# HELP t_us Times
# TYPE t_us histogram
t_us_bucket{le="1"} 3
t_us_bucket{le="+Inf"} 5
t_us_sum 4.75
t_us_count 5
# HELP process_start_time_seconds Start
# TYPE process_start_time_seconds gauge
process_start_time_seconds 101.5
# HELP b Only here
# TYPE b gauge
b +Inf
"""
    )


def test_one_page_stays_what_it_is() -> None:
    assert summed([ONE]) == ONE
