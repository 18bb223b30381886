"""Adds up an order, and leaves a marker that shows that it really ran."""

from pathlib import Path

Path("program-ran").write_text("yes\n", encoding="utf-8")
prices = [12, 30, 18]
for price in prices:
    print(f"item {price}")  # noqa: T201
print(f"total {sum(prices)}")  # noqa: T201
