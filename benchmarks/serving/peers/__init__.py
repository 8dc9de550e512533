"""The servers that are measured, a module each."""

from benchmarks.serving.peers.base import Peer
from benchmarks.serving.peers.bentoml import BentoML
from benchmarks.serving.peers.fairlead import Fairlead
from benchmarks.serving.peers.kserve import KServe
from benchmarks.serving.peers.limits import Echo, Prototype
from benchmarks.serving.peers.litserve import LitServe
from benchmarks.serving.peers.mlserver import MLServer
from benchmarks.serving.peers.triton import Triton

PEERS: tuple[Peer, ...] = (Fairlead(), Echo(), Prototype(), Triton(), MLServer(), KServe(), LitServe(), BentoML())
