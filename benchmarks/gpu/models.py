"""The two shapes as torch modules with random weights: BERT's encoder and ResNet-50."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional


class Layer(nn.Module):
    """One layer of BERT's encoder (Devlin et al. 2018)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.joined, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.joined(x).chunk(3, dim=-1)
        )
        attended = functional.scaled_dot_product_attention(query, key, value)
        x = self.first(x + self.out(attended.transpose(1, 2).reshape(batch, length, width)))
        return self.second(x + self.narrow(functional.gelu(self.wide(x))))


class Bert(nn.Module):
    """Token ids [batch, length] to the first token's vector [batch, width]."""

    def __init__(self, layers: int, width: int, heads: int, length: int, words: int = 30522) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.layers(self.norm(self.words(ids) + self.places.weight))[:, 0]


class Bottleneck(nn.Module):
    """One block of ResNet-50 (He et al. 2015)."""

    def __init__(self, given: int, inner: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(given, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU()),
            *(nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU()),
            *(nn.Conv2d(inner, 4 * inner, 1, bias=False), nn.BatchNorm2d(4 * inner)),
        )
        same = given == 4 * inner and stride == 1
        self.beside = nn.Identity() if same else nn.Conv2d(given, 4 * inner, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(x) + self.beside(x))


def resnet(blocks: tuple[int, ...] = (3, 4, 6, 3)) -> nn.Module:
    """Return images [batch, 3, side, side] to scores [batch, 1000]."""
    parts: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    parts.append(nn.MaxPool2d(3, 2, 1))
    given = 64
    for stage, count in enumerate(blocks):
        inner = 64 << stage
        for block in range(count):
            parts.append(Bottleneck(given, inner, 2 if stage and not block else 1))
            given = 4 * inner
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, 1000))


@dataclass(frozen=True)
class Shape:
    """A model to measure.

    Attributes:
        row: shape of one row of its input.
        words: how many token ids there are; 0 for images.
    """

    name: str
    module: Callable[[], nn.Module]
    row: tuple[int, ...]
    words: int = 0

    def rows(self, count: int, dtype: Any) -> Any:
        """Return inputs as numpy, the same for the same count."""
        random = np.random.default_rng(count)
        if self.words:
            return random.integers(0, self.words, (count, *self.row))
        return random.normal(size=(count, *self.row)).astype("f2" if dtype is torch.float16 else "f4")


SHAPES = (
    Shape("bert_large", lambda: Bert(24, 1024, 16, 128), (128,), words=30522),
    Shape("resnet50", resnet, (3, 224, 224)),
)
SMALL_SHAPES = (
    Shape("bert_large", lambda: Bert(2, 64, 4, 16, 100), (16,), words=100),
    Shape("resnet50", lambda: resnet((1, 1)), (3, 32, 32)),
)
"""For trying the script where there is no GPU: the same code, sizes that say nothing."""


def save(shape: Shape, folder: Path, dtype: Any, batch: int, kind: str) -> None:
    """Write a model's folder: a program of torch.export in `dtype`, and the config that serves it."""
    torch.manual_seed(0)
    module = shape.module().eval().to(dtype)
    given = torch.from_numpy(shape.rows(2, dtype))
    program = torch.export.export(module, (given,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},))
    (folder / "1").mkdir(parents=True)
    torch.export.save(program, folder / "1" / "model.pt2")
    graphs = f'parameters {{ key: "CUDA_GRAPH_BATCH_SIZES" value {{ string_value: "{batch}" }} }}'
    (folder / "config.pbtxt").write_text(
        f"max_batch_size: {batch} dynamic_batching {{}} instance_group {{ kind: {kind} }} "
        + (graphs if kind == "KIND_GPU" else "")
    )
