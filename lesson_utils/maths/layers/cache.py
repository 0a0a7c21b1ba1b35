"""Keys and values that decoding keeps, so that they are not computed again."""

import numpy as np

from lesson_utils.maths.checks import Array, as_size
from lesson_utils.maths.positions import Rotary


class KeyValueCache:
    """Keys and values of the positions decoded so far, with room for `capacity` of them.

    Args:
        keep: None: appending to a full cache is an error. A number: a full cache rolls. It forgets the oldest position
            except the first `keep`, the "attention sinks", on which models put weight that they have no other use for.
            Positions are then counted within the cache.

    Source: Xiao et al. (2024), "StreamingLLM", section 3.2, for the rolling cache.
    """

    def __init__(self, capacity: int, keep: int | None = None) -> None:
        self.capacity, self.length = as_size(capacity, "capacity"), 0
        self.keep = None if keep is None else as_size(keep, "keep", minimum=0)
        if keep is not None and keep >= self.capacity:
            raise ValueError(f"keep={keep} must be smaller than capacity={capacity}; what is left is the window")
        self.K = self.V = np.empty(0, np.float32)
        self._turned = 0  # so many keys are turned by their positions already

    def length_with(self, T: int) -> int:
        """Return how many positions there will be after T more have been appended."""
        return self.length + T if self.keep is None else min(self.length + T, self.capacity)

    def append(self, K: Array, V: Array) -> tuple[Array, Array]:
        """Add keys and values, (B, h, T, d_k) each; return all that are in the cache, (B, h, length, d_k)."""
        B, h, T, d_k = K.shape
        self._turned = min(self._turned, self.length)  # whoever lowers `length` takes positions back
        if self.length == 0:
            self.K, self.V = np.empty((2, B, h, self.capacity, d_k), K.dtype)
        if self.keep is not None and self.length == self.capacity and T == 1:
            for kept in (self.K, self.V):
                kept[:, :, self.keep : -1] = kept[:, :, self.keep + 1 :].copy()
            self.length -= 1
        end = self.length + T
        if end > self.capacity:
            hint = "" if self.keep is None else "; a full cache that rolls takes one at a time"
            raise ValueError(f"no room for {T} more positions: {self.length} of {self.capacity} are taken{hint}")
        self.K[:, :, self.length : end], self.V[:, :, self.length : end] = K, V
        self.length = end
        return self.K[:, :, :end], self.V[:, :, :end]

    def turn_keys(self, rotary: Rotary) -> Array:
        """Turn the keys by their positions; return all of them, (B, h, length, d_k).

        A key is turned once, when it is new. Only in a cache that rolls positions change, and all keys are turned anew.
        """
        if self.keep is not None:
            return rotary.turn(self.K[:, :, : self.length], np.arange(self.length))
        new = self.K[:, :, self._turned : self.length]
        new[...] = rotary.turn(new, np.arange(self._turned, self.length))
        self._turned = self.length
        return self.K[:, :, : self.length]
