"""Several signed sums in one plaintext: each in a slot wide enough that no sum can reach its neighbour.

A plaintext holds P = sum_i v_i 2^(o_i). When at most *terms* packed plaintexts are added and every |v_i| <= B_i, a sum
lies within terms * B_i, so a slot of bits(terms * B_i) + 1 bits keeps it, sign and all; *guard* further bits make a
party that breaks its bound show up (as PlaintextOverflow at unpacking) instead of spilling at once. Slots are found by
first fit, widest first, from public figures alone: every party finds the same layout. The figures are in bits:
sum of widths / (bits of n - 2) ciphertexts, about a twentieth of one value each at 3072 bits and q = 50.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from velado.encrypted.crypto.keys import PublicKey
from velado.errors import ParameterError, PlaintextOverflow


class Slot(NamedTuple):
    """Where a value lies: in which plaintext, from which bit, over how many bits."""

    plaintext: int
    offset: int
    width: int


@dataclass(frozen=True)
class Packing:
    """The layout for values with |v_i| <= bounds[i], of which at most *terms* are added up, in plaintexts of some bits."""

    bounds: tuple[int, ...]
    terms: int
    plaintext_bits: int
    guard: int = 1

    def __post_init__(self) -> None:
        if not self.bounds or min(self.bounds) < 0 or self.terms < 1 or self.guard < 0:
            raise ParameterError(
                "A packing needs bounds of 0 or more and at least one term.",
                "The slots follow from them.",
                "Give one bound for each value and the most plaintexts that are added.",
            )
        widest = max(self._width(bound) for bound in self.bounds)
        if widest > self.plaintext_bits:
            raise PlaintextOverflow(
                f"A sum of {self.terms} values needs a slot of {widest} bits and a plaintext has {self.plaintext_bits}.",
                "It would come back as another number.",
                f"Use a key of {widest + 2} bits or more, fewer fractional bits, or tighter bounds.",
            )

    @classmethod
    def for_key(cls, key: PublicKey, bounds: Sequence[int], terms: int, guard: int = 1) -> Packing:
        """The layout under a key: packed sums stay within its signed plaintexts."""
        return cls(tuple(int(b) for b in bounds), terms, key.bits - 2, guard)

    def _width(self, bound: int) -> int:
        return (self.terms * bound).bit_length() + 1 + self.guard

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The slot of each value, in the order of the bounds."""
        widths = [self._width(bound) for bound in self.bounds]
        used: list[int] = []
        found: dict[int, Slot] = {}
        for index in sorted(range(len(widths)), key=lambda i: (-widths[i], i)):
            width = widths[index]
            place = next((k for k, bits in enumerate(used) if bits + width <= self.plaintext_bits), len(used))
            if place == len(used):
                used.append(0)
            found[index] = Slot(place, used[place], width)
            used[place] += width
        return tuple(found[index] for index in range(len(widths)))

    @cached_property
    def plaintexts(self) -> int:
        """How many plaintexts the values take."""
        return 1 + max(slot.plaintext for slot in self.slots)

    @cached_property
    def _biases(self) -> tuple[int, ...]:
        """Half of every slot of a plaintext: added, it makes all slots non-negative, so that they can be cut apart."""
        biases = [0] * self.plaintexts
        for slot in self.slots:
            biases[slot.plaintext] += 1 << (slot.offset + slot.width - 1)
        return tuple(biases)

    @cached_property
    def _used(self) -> tuple[int, ...]:
        used = [0] * self.plaintexts
        for slot in self.slots:
            used[slot.plaintext] = max(used[slot.plaintext], slot.offset + slot.width)
        return tuple(used)

    def pack(self, values: Sequence[int]) -> list[int]:
        """The plaintexts that hold one party's values; one beyond its bound is refused."""
        if len(values) != len(self.bounds):
            raise ValueError("a packing takes one value for each bound")
        plaintexts = [0] * self.plaintexts
        for index, (value, slot) in enumerate(zip(values, self.slots, strict=True)):
            if abs(value) > self.bounds[index]:
                raise self._too_large(index)
            plaintexts[slot.plaintext] += int(value) << slot.offset
        return plaintexts

    def unpack(self, plaintexts: Sequence[int], terms: int | None = None) -> list[int]:
        """The sums, exactly; one that *terms* honest parties cannot have reached is refused."""
        if len(plaintexts) != self.plaintexts:
            raise ValueError("a packing unpacks as many plaintexts as it packs")
        most = self.terms if terms is None else terms
        if not 1 <= most <= self.terms:
            raise ValueError("no more terms may be unpacked than the slots were made for")
        raised = [int(p) + bias for p, bias in zip(plaintexts, self._biases, strict=True)]
        for value, bits in zip(raised, self._used, strict=True):
            if value < 0 or value >> bits:
                raise self._too_large(None)
        sums = []
        for index, slot in enumerate(self.slots):
            cut = raised[slot.plaintext] >> slot.offset & ((1 << slot.width) - 1)
            value = cut - (1 << (slot.width - 1))
            if abs(value) > most * self.bounds[index]:
                raise self._too_large(index)
            sums.append(value)
        return sums

    def _too_large(self, index: int | None) -> PlaintextOverflow:
        which = "A packed sum" if index is None else f"Value {index} of {len(self.bounds)}"
        return PlaintextOverflow(
            f"{which} is larger than the public bounds allow.",
            "It would spill into its neighbours, or a party broke its bounds.",
            "Check every party's bounds and row count.",
        )
