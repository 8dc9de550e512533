"""The analysis of a rollout's step: what was counted, and what that says about the canary. Pure.

confidence   bounds for a share that stay valid however often one looks
batches      executions by size, and the canary's throughput beside stable's
totals       counters of processes that restart, summed up over a step
gate         totals and a policy's gate -> a Finding
verdict      Finding, Measurement, Verdict
"""
