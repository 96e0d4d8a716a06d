"""A GPT: it reads tokens up to a place and says what comes next, at all places at once.

    tokens --embed--> x --[ x + attention(norm(x)), x + mlp(norm(x)) ] ... --norm--> x --embed, transposed--> logits
     (b, t)        (b, t, w)              one block                                                   (b, t, v)

Norms come first (pre-norm) and the head is the embedding again (tied). Source: Radford and others 2019, "Language
models are unsupervised multitask learners" (GPT-2); its initialisation too.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from lt_core.base.errors import UserError


@dataclass(frozen=True)
class Config:
    """The shape of a GPT: blocks, features, heads, the longest text it reads, and how many tokens there are."""

    blocks: int
    width: int
    heads: int
    context: int
    vocabulary: int
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.heads < 1 or self.width % self.heads:
            raise UserError(f"{self.heads} heads cannot share {self.width} features", expected="a multiple")


POCKET = Config(blocks=8, width=64, heads=4, context=64, vocabulary=256)  # bytes; 420,480 parameters in 100 tensors


def gpt(config: Config = POCKET, seed: int = 0, dtype: torch.dtype = torch.float32) -> GPT:
    """A GPT of this shape; the same seed gives the same weights."""
    model, generator = GPT(config), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("bias"):
                p.zero_()
            elif p.dim() > 1:  # norms stay at one
                std = 0.02 / (2 * config.blocks) ** 0.5 if name.endswith("out.weight") else 0.02
                p.normal_(0, std, generator=generator)
    return model.to(dtype)


class Attention(nn.Module):
    """Each place looks at the places up to it, through several heads."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        """x, result: (b, t, w)."""
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)  # each (b, h, t, w / h)
        scores = q @ k.transpose(-2, -1) / (w // self.heads) ** 0.5  # (b, h, t, t)
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        weights = functional.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        weights = functional.dropout(weights, self.dropout, self.training)
        mixed: Tensor = self.out((weights @ v).transpose(1, 2).reshape(b, t, w))
        return mixed


class Mlp(nn.Module):
    """Each place by itself: four times as wide, and back."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.wide = nn.Linear(config.width, 4 * config.width)
        self.out = nn.Linear(4 * config.width, config.width)

    def forward(self, x: Tensor) -> Tensor:
        """x, result: (b, t, w)."""
        result: Tensor = self.out(functional.gelu(self.wide(x)))
        return result


class Block(nn.Module):
    """What is stacked."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.norm1, self.attention = nn.LayerNorm(config.width), Attention(config)
        self.norm2, self.mlp = nn.LayerNorm(config.width), Mlp(config)

    def forward(self, x: Tensor) -> Tensor:
        """x, result: (b, t, w)."""
        x = x + functional.dropout(self.attention(self.norm1(x)), self.dropout, self.training)
        return x + functional.dropout(self.mlp(self.norm2(x)), self.dropout, self.training)


class GPT(nn.Module):
    """The model; `gpt` makes one with its weights set."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.context, config.width)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.blocks)))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (b, t, vocabulary) of what follows each of `tokens` (b, t), integers.

        Errors: t above the context; on the CPU, tokens that are none (a GPU would have to be waited for).
        """
        t = tokens.shape[1]
        if t > self.config.context:
            raise UserError(f"{t} tokens are too many", expected=f"at most {self.config.context}")
        if tokens.device.type == "cpu" and tokens.numel():
            _check_range(tokens, self.config.vocabulary)
        places = torch.arange(t, device=tokens.device)
        x = functional.dropout(self.tokens(tokens) + self.places(places), self.config.dropout, self.training)
        return functional.linear(self.norm(self.blocks(x)), self.tokens.weight)


def _check_range(tokens: Tensor, vocabulary: int) -> None:
    low, high = (int(x) for x in tokens.aminmax())
    if not 0 <= low <= high < vocabulary:
        raise UserError("there is no such token", low if low < 0 else high, f"0 to {vocabulary - 1}")


def loss(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """Cross entropy of logits (b, t, vocabulary) and what really followed, targets (b, t): its mean, or its "sum"."""
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)
