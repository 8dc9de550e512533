"""Statistics of several processes as one message."""

from serving_runtime import proto
from serving_runtime.engine.serving.statistics import summed

Response = proto.message("inference.ModelStatisticsResponse")


def one(name: str, last: int, count: int, batches: dict[int, int]) -> bytes:
    """Return what one process says of a model."""
    response = Response()
    entry = response.model_stats.add(name=name, version="1", last_inference=last, inference_count=count)
    entry.execution_count = len(batches)
    entry.inference_stats.success.count, entry.inference_stats.success.ns = count, count * 10
    entry.memory_usage.add(type="CPU", byte_size=100)
    entry.response_stats["0"].success.count = count
    for size, times in batches.items():
        batch = entry.batch_stats.add(batch_size=size)
        batch.compute_infer.count, batch.compute_infer.ns = times, times * 5
    content: bytes = response.SerializeToString()
    return content


def test_entries_of_one_model_are_added_up() -> None:
    parts = one("a", 5, 2, {1: 2}), one("b", 1, 1, {1: 1}), one("a", 9, 12, {4: 3, 1: 4})
    a, b = summed(Response.FromString(b"".join(parts))).model_stats
    assert (a.name, a.last_inference, a.inference_count, a.execution_count) == ("a", 9, 14, 3)
    assert (a.inference_stats.success.count, a.inference_stats.success.ns) == (14, 140)
    assert a.response_stats["0"].success.count == 14
    assert [usage.byte_size for usage in a.memory_usage] == [200]
    found = [(batch.batch_size, batch.compute_infer.count, batch.compute_infer.ns) for batch in a.batch_stats]
    assert found == [(1, 6, 30), (4, 3, 15)]
    assert (b.name, b.inference_count) == ("b", 1)
