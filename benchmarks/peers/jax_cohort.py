"""n runs in JAX: jit over a scan over steps over vmap over runs; the parameters are donated and updated in place."""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from peers.jax_convolution import Array, Layout
from peers.jax_network import batch_loss
from peers.problem import Floats, Problem

Precision = Literal["highest", "default"]  # float32, or what the device likes (TF32 on an H200)
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


class JaxCohort:
    """All runs of a problem at once on JAX's default device, `scan` steps to a call, `unroll` of them written out.

    Layout and `outer` (see jax_convolution and jax_network) are ways of saying the same thing to XLA; which is fastest
    depends on the device and the sizes.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        precision: Precision = "highest",
        layout: Layout = "rows",
        outer: bool = False,
        scan: int = 50,
        unroll: int = 1,
    ) -> None:
        if problem.steps % scan:
            raise ValueError(f"{problem.steps} steps are not whole scans of {scan}")
        self.problem, self.precision, self.scan = problem, precision, scan
        self.data = tuple(  # images [N, H, W], labels [N], indices [S, n, B], keys [S, n], lr [n]
            jnp.asarray(values)
            for values in (
                problem.images[:, 0],
                problem.labels.astype(np.int32),
                problem.indices.astype(np.int32),
                problem.keys,
                problem.lr,
            )
        )
        pool, rate = problem.design == "cnn-pool", np.float32(problem.rate)
        loss = partial(batch_loss, rate=rate, layout=layout, pool=pool, outer=outer)
        self.advance = jax.jit(partial(_scan, loss, scan, unroll), donate_argnums=0)
        self.params: dict[str, Array] = {}
        self.position = 0
        self.reset()

    def prepare(self) -> None:
        """Compile, take the steps of one call, then go back."""
        with jax.default_matmul_precision(self.precision):
            self.advance = self.advance.lower(self.params, self._start(), *self.data).compile()
        self.run(self.scan)
        self.reset()

    def run(self, steps: int) -> None:
        """Advance every run by so many steps, a multiple of `scan`, and wait for the device."""
        if steps % self.scan:
            raise ValueError(f"{steps} steps are not whole scans of {self.scan}")
        for _ in range(steps // self.scan):
            self.params = self.advance(self.params, self._start(), *self.data)
            self.position = (self.position + self.scan) % self.problem.steps
        jax.block_until_ready(self.params)

    def reset(self) -> None:
        """Back to the initial parameters and the first step."""
        self.params = {name: jnp.array(values, copy=True) for name, values in self.problem.params.items()}
        self.position = 0

    def parameters(self) -> dict[str, Floats]:
        """Name -> [n, ...]."""
        return {name: np.array(values) for name, values in self.params.items()}

    def _start(self) -> np.int32:
        return np.int32(self.position)


def _scan(loss: Array, steps: int, unroll: int, params: Array, start: Array, *data: Array) -> Array:
    """`steps` steps of all runs from step `start` on."""
    images, labels, indices, keys, lr = data
    coming = [lax.dynamic_slice_in_dim(values, start, steps) for values in (indices, keys)]

    def one_run(params: Array, chosen: Array, key: Array, lr: Array) -> Array:
        batch = (values.at[chosen].get(mode="promise_in_bounds") for values in (images, labels))
        gradient = jax.grad(loss)(params, *batch, key)
        return jax.tree.map(lambda value, slope: value - lr * slope, params, gradient)

    def step(params: Array, now: tuple[Array, Array]) -> tuple[Array, None]:
        return jax.vmap(one_run)(params, *now, lr), None

    return lax.scan(step, params, tuple(coming), unroll=unroll)[0]
