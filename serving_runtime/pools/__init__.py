"""Model pools: one runtime that answers for any model of a catalog (docs/reference/model-pools.md).

fairlead-serve --model-pool SOCKET          fairlead-serve pool-fetcher (outside the sandbox)
names       <- paths and metadata           catalog     one document a model, looked up by name
directory   -- looks up, asks for -- socket --> fetcher fetches, checks, unpacks
loader      loads on demand, evicts         cache       folders by digest, least recently used leave
"""
