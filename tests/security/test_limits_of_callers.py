"""A client that invents keys, names and addresses gets the share of one caller, and grows nothing in Envoy."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import httpx

from integrations.clusters.base import Limits
from integrations.metrics.pages import read, unix_url
from tests._support.gateway import running_gateway, token

PATH = "/serving/default/digits/v2/models/digits/infer"
PER_SECOND = 5
BATCHES, IN_A_BATCH = 20, 50
MOST_GROWTH_BYTES = 512 * 1024


def invented(number: int) -> dict[str, str]:
    return {
        "authorization": f"Bearer {token()[:-6]}{number:06d}",
        "fairlead-caller": f"caller-{number}",
        "fairlead-key": f"key-{number}",
        "x-forwarded-for": f"10.0.{number // 256}.{number % 256}",
    }


async def test_invented_callers_share_one_bucket_and_grow_nothing(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        limits = Limits(caller_requests_per_second=PER_SECOND)
        await gateway.push(services=(replace(gateway.routing.services[0], limits=limits),))
        loop = asyncio.get_running_loop()

        async def allocated() -> int:
            page = await asyncio.to_thread(read, unix_url(tmp_path / "admin.sock", "/memory"), {})
            return int(json.loads(page)["allocated"])

        async with httpx.AsyncClient(timeout=20) as client:

            async def attack(batch: int) -> int:
                numbers = range(batch * IN_A_BATCH, (batch + 1) * IN_A_BATCH)
                sent = (gateway.http(client, PATH, invented(number)) for number in numbers)
                return sum(each.status_code == 200 for each in await asyncio.gather(*sent))

            began = loop.time()
            served = await attack(0)  # opens the connections
            before = await allocated()
            for batch in range(1, BATCHES):
                served += await attack(batch)
            took_s = loop.time() - began
            assert served <= PER_SECOND * (took_s + 2)
            assert await allocated() - before < MOST_GROWTH_BYTES
