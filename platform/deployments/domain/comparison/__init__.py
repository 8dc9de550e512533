"""Answer comparison: stable's and a shadow's answers to the same requests, tensor by tensor. Pure.

comparison_policy  what a policy asks: tolerances, top-k, how many pairs, how much agreement
pairing            halves of an exchange, as they are read -> pairs with the same request id
difference         two tensors -> Difference
ranking            the k best classes of each row: are they the same?
answers            two answers -> Comparison
distribution       differences on a logarithmic scale, and their quantiles
worst_examples     the requests whose answers differ the most, shortened
report             comparisons, added up tick by tick
interval           bounds of a mean that hold at all looks
agreement          a report and a policy's terms -> a Measurement
stored             reports and what waits as JSON and bytes
"""
