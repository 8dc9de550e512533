"""Canary analysis of a rollout's step: evidence from counters, and the verdict on the canary. Pure.

batches      executions by size, and the canary's throughput beside stable's
totals       counters of processes that restart, summed up over a step
blocks       the step cut into blocks of time, the unit of the evidence
eprocess     evidence by betting, valid however often one looks; its sources
ledger       the evidence of an attempt, from tick to tick and from step to step
question     what a measurement is, and how to add a kind: errors, latency
planning     how many requests a policy needs to find a stated regression, from stable's traffic
gate         a policy's gate, a window and a ledger -> a Finding
verdict      Finding, Measurement, Verdict
"""
