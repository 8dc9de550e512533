"""Canary analysis of a rollout's step: evidence from counters, and the verdict on the canary. Pure.

evidence/batch_profile    executions by size, and the canary's throughput beside stable's
evidence/totals           counters of processes that restart, summed up over a step
evidence/blocks           the step cut into blocks of time, the unit of the evidence
evidence/eprocess         evidence by betting, valid however often one looks; its sources
evidence/labelled         labelled answers of both sides, as the room of labels sums them up
evidence/label_watch      the labels of a scorer from look to look: blocks of requests whose labels are due
evidence/quality_bets     bets on the mean losses of labelled answers
evidence/ledger           the evidence of an attempt, from tick to tick and from step to step
criterion                 what a measurement is, and how to add a kind
measurements/             the kinds: errors, latency, throughput, agreement, metrics, quality
forecast                  how many requests a policy needs to find a stated regression, from stable's traffic
quality_forecast          how many labels it needs for that
gate                      a policy's gate, a window and a ledger -> a Finding
verdict                   Finding, Measurement, Verdict
"""
