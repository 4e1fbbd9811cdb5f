"""Budgets: how many tokens and entries a block may have. Whole entries only. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

Count = Callable[[str], int]
"""Tokens of a text, by a real tokenizer."""
FULL = "the block has all the entries that it may have"
MOST_BYTES_A_TOKEN = 32
"""Text of more bytes than this for each token of a budget is over it: it need not be counted to know."""
_SMALL = 64 * 1024


@dataclass(slots=True)
class Budget:
    """What is left of a block's tokens and entries."""

    tokens: int
    items: int

    def refusal(self, cost: int) -> str | None:
        """Why an entry of that many tokens does not fit, or None when it does."""
        if self.items < 1:
            return FULL
        if cost > self.tokens:
            return f"its {cost} tokens do not fit into the {max(self.tokens, 0)} that are left"
        return None

    def take(self, cost: int) -> None:
        """Spend an entry's tokens."""
        self.tokens -= cost
        self.items -= 1


def most_bytes(tokens: int) -> int:
    """How large a text may be to be worth counting against that many tokens."""
    return max(_SMALL, tokens * MOST_BYTES_A_TOKEN)
