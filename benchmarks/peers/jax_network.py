"""The network cnn-pool or cnn-strided in JAX, for one run, with our hashed dropout."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from peers.jax_convolution import Array, Layout, features


def batch_loss(
    params: dict[str, Array],
    images: Array,
    labels: Array,
    key: Array,
    *,
    rate: np.float32,
    layout: Layout,
    pool: bool,
    outer: bool,
) -> Array:
    """The mean cross-entropy of one batch of one run: images [B, H, W], labels [B]."""
    linear = OUTER_LINEAR if outer else _linear
    hidden1, hidden2, out = (
        (params[f"{name}.weight"], params[f"{name}.bias"]) for name in ("hidden1", "hidden2", "out")
    )
    x = features(params, images, layout, pool)
    x = drop(jax.nn.relu(linear(x, *hidden1)), rate, key)
    logits = linear(jax.nn.relu(linear(x, *hidden2)), *out)
    right = (logits * jax.nn.one_hot(labels, logits.shape[1])).sum(1)  # a product: a gather's gradient is a scatter
    return (jax.nn.logsumexp(logits, axis=1) - right).mean()


def _linear(x: Array, weight: Array, bias: Array) -> Array:
    return x @ weight.T + bias


def _outer_forward(x: Array, weight: Array, bias: Array) -> tuple[Array, tuple[Array, Array]]:
    return _linear(x, weight, bias), (x, weight)


def _outer_backward(kept: tuple[Array, Array], slope: Array) -> tuple[Array, Array, Array]:
    x, weight = kept
    outer = sum(slope[example, :, None] * x[example, None, :] for example in range(len(x)))
    return slope @ weight, outer, slope.sum(0)


# A linear layer whose weights' gradient is written out as a sum over the batch, not as a product of matrices: for small
# batches XLA can fuse that with the update, so that the gradient never goes through memory.
OUTER_LINEAR = jax.custom_vjp(_linear)
OUTER_LINEAR.defvjp(_outer_forward, _outer_backward)


def drop(x: Array, rate: np.float32, key: Array) -> Array:
    """`tiebreak.layers.dropout.drop`, bit for bit; like there, the hash is compared as a float32."""
    hashed = _stir(_mix(jnp.arange(x.size, dtype=jnp.int32)) ^ key).astype(jnp.float32)
    keep = hashed >= rate * np.float32(2.0**32) - np.float32(2.0**31)
    return x * jnp.where(keep, 1 / (1 - rate), 0).reshape(x.shape)


def _mix(bits: Array) -> Array:
    bits = _stir(bits ^ ((bits >> 16) & 0xFFFF))
    return bits ^ ((bits >> 16) & 0xFFFF)


def _stir(bits: Array) -> Array:
    bits = bits * 0x7FEB352D
    bits = bits ^ ((bits >> 15) & 0x1FFFF)
    return bits * (0x846CA68B - 2**32)
