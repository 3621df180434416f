"""The networks of `own_designs` in JAX, n runs by vmap: one jitted step, parameters by torch's names.

A convolution has three forms, of which the fastest counts: `library` (which vmap makes a grouped convolution), `slices`
(one product of K K shifted slices) and `patches` (the library's own unfolding and a product).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any
FORMS = ("library", "slices", "patches")
AXES = ("NCHW", "OIHW", "NCHW")


def conv(x: Array, weight: Array, *, stride: int = 1, padding: int = 0, groups: int = 1, form: str) -> Array:
    """x [B, C, H, W], weight [O, C / groups, K, K]."""
    out, _, size, _ = weight.shape
    pads = [(padding, padding)] * 2
    if form == "library" or (groups > 1 and form == "patches"):
        return lax.conv_general_dilated(
            x, weight, (stride, stride), pads, dimension_numbers=AXES, feature_group_count=groups
        )
    if form == "patches":
        found = lax.conv_general_dilated_patches(x, (size, size), (stride, stride), pads, dimension_numbers=AXES)
        return jnp.einsum("bkhw,ok->bohw", found, weight.reshape(out, -1))
    x = jnp.pad(x, ((0, 0), (0, 0), *pads))
    height, width = ((side - size) // stride + 1 for side in x.shape[2:])
    slices = [
        x[:, :, i : i + (height - 1) * stride + 1 : stride, j : j + (width - 1) * stride + 1 : stride]
        for i in range(size)
        for j in range(size)
    ]
    stacked = jnp.stack(slices, 2)  # [B, C, K K, H, W]
    if groups > 1:  # depthwise
        return (stacked * weight.reshape(1, out, -1, 1, 1)).sum(2)
    return jnp.einsum("bckhw,ock->bohw", stacked, weight.reshape(out, x.shape[1], -1))


def normed(x: Array, params: Mapping[str, Array], name: str, groups: int = 0) -> Array:
    """Batch normalisation of a training step, or group normalisation."""
    if groups:
        parts = x.reshape(x.shape[0], groups, -1)
        parts = (parts - parts.mean(2, keepdims=True)) / jnp.sqrt(parts.var(2, keepdims=True) + 1e-5)
        x = parts.reshape(x.shape)
    else:
        axes = (0, 2, 3)
        x = (x - x.mean(axes, keepdims=True)) / jnp.sqrt(x.var(axes, keepdims=True) + 1e-5)
    return x * params[f"{name}.weight"][:, None, None] + params[f"{name}.bias"][:, None, None]


def layer_norm(x: Array, params: Mapping[str, Array], name: str) -> Array:
    x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x * params[f"{name}.weight"] + params[f"{name}.bias"]


def linear(x: Array, params: Mapping[str, Array], name: str) -> Array:
    return x @ params[f"{name}.weight"].T + params[f"{name}.bias"]


def resnet(params: Mapping[str, Array], batch: Mapping[str, Array], form: str, groups: int) -> Array:
    x = jax.nn.relu(normed(conv(batch["images"], params["stem.weight"], padding=1, form=form), params, "norm", groups))
    for number, stride in enumerate((1, 1, 2, 1, 2, 1)):
        at = f"blocks.{number}"
        y = conv(x, params[f"{at}.first.weight"], stride=stride, padding=1, form=form)
        y = jax.nn.relu(normed(y, params, f"{at}.norm_first", groups))
        y = conv(y, params[f"{at}.second.weight"], padding=1, form=form)
        y = normed(y, params, f"{at}.norm_second", groups)
        short = params.get(f"{at}.shortcut.weight")
        x = jax.nn.relu(y + (x if short is None else conv(x, short, stride=stride, form=form)))
    return linear(x.mean((2, 3)), params, "out")


def separable(params: Mapping[str, Array], batch: Mapping[str, Array], form: str) -> Array:
    x = jax.nn.relu(conv(batch["images"], params["stem.weight"], stride=2, padding=1, form=form))
    for number, stride in enumerate((1, 2, 1)):
        deep = params[f"deep.{number}.weight"]
        x = conv(x, deep, stride=stride, padding=1, groups=len(deep), form=form)
        x = jax.nn.relu(normed(conv(x, params[f"points.{number}.weight"], form=form), params, f"norms.{number}"))
    return linear(x.mean((2, 3)), params, "out")


def vit(params: Mapping[str, Array], batch: Mapping[str, Array], form: str) -> Array:
    x = conv(batch["images"], params["patches.weight"], stride=7, form=form)
    x = x.reshape(*x.shape[:2], -1).swapaxes(1, 2) + params["patches.bias"] + params["places"]
    for number in range(4):
        at = f"encoder.layers.{number}"
        y = layer_norm(x, params, f"{at}.norm1")
        joint = y @ params[f"{at}.self_attn.in_proj_weight"].T + params[f"{at}.self_attn.in_proj_bias"]
        q, k, v = (each.reshape(*y.shape[:2], 4, -1).swapaxes(1, 2) for each in jnp.split(joint, 3, -1))
        mixed = jax.nn.softmax(q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1]), -1) @ v
        x = x + linear(mixed.swapaxes(1, 2).reshape(x.shape), params, f"{at}.self_attn.out_proj")
        y = linear(layer_norm(x, params, f"{at}.norm2"), params, f"{at}.linear1")
        x = x + linear(jax.nn.gelu(y, approximate=False), params, f"{at}.linear2")
    return linear(layer_norm(x, params, "encoder.norm").mean(1), params, "out")


def lstm(x: Array, params: Mapping[str, Array], name: str, first: Any, real: Array, reverse: bool = False) -> Any:
    """x [B, T, I], real [B, T]; outputs [B, T, H], 0 where nothing is real, and the last (h, c)."""
    end = "l0_reverse" if reverse else "l0"
    drive = x @ params[f"{name}.weight_ih_{end}"].T + params[f"{name}.bias_ih_{end}"] + params[f"{name}.bias_hh_{end}"]
    weight = params[f"{name}.weight_hh_{end}"].T

    def step(state: Any, given: Any) -> Any:
        h, c = state
        now, here = given
        enter, keep, fresh, show = jnp.split(now + h @ weight, 4, -1)
        new = jax.nn.sigmoid(keep) * c + jax.nn.sigmoid(enter) * jnp.tanh(fresh)
        out = jax.nn.sigmoid(show) * jnp.tanh(new)
        here = here[:, None]
        return (jnp.where(here, out, h), jnp.where(here, new, c)), jnp.where(here, out, 0)

    last, outputs = lax.scan(step, first, (drive.swapaxes(0, 1), real.T), reverse=reverse)
    return outputs.swapaxes(0, 1), last


def translator(params: Mapping[str, Array], batch: Mapping[str, Array], form: str) -> Array:
    real = batch["source"] != 0
    x = params["source.weight"][batch["source"]]
    zero = jnp.zeros((len(x), x.shape[-1] // 2), x.dtype)
    ways = [lstm(x, params, "encoder", (zero, zero), real, back) for back in (False, True)]
    memory = jnp.concatenate([outputs for outputs, _ in ways], -1)
    first = tuple(jnp.concatenate([last[part] for _, last in ways], -1) for part in (0, 1))
    y = params["target.weight"][batch["inputs"]]
    out, _ = lstm(y, params, "decoder", first, jnp.ones(y.shape[:2], bool))
    scores = out @ params["score.weight"].T @ memory.swapaxes(1, 2)
    weights = jax.nn.softmax(jnp.where(real[:, None], scores, -1e9), -1)
    out = jnp.tanh(linear(jnp.concatenate([out, weights @ memory], -1), params, "output"))
    return out @ params["target.weight"].T


def language(params: Mapping[str, Array], batch: Mapping[str, Array], form: str) -> Array:
    tokens = batch["inputs"].reshape(-1, batch["inputs"].shape[-1])
    x = params["embedding.weight"][tokens]
    zero = jnp.zeros((len(x), params["lstm.weight_hh_l0"].shape[1]), x.dtype)
    return linear(lstm(x, params, "lstm", (zero, zero), jnp.ones(x.shape[:2], bool))[0], params, "out")


NETWORKS: dict[str, Callable[..., Array]] = {
    "resnet-batchnorm": partial(resnet, groups=0),
    "resnet-groupnorm": partial(resnet, groups=4),
    "vit": vit,
    "separable": separable,
    "translator": translator,
    "lstm-language": language,
}


class JaxRuns:
    """n runs: parameters [n, ...] by torch's names, data, and the indices [S, n, B] of every step."""

    def __init__(
        self, name: str, params: Mapping[str, Any], split: Mapping[str, Any], indices: Any, *, lr: float, rule: str,
        form: str, precision: str = "highest",
    ) -> None:  # fmt: skip
        self.params = {key: jnp.asarray(values) for key, values in params.items()}
        self.slots = jax.tree.map(lambda values: (jnp.zeros_like(values), jnp.zeros_like(values)), self.params)
        self.split = {key: jnp.asarray(values) for key, values in split.items()}
        self.indices, self.count = jnp.asarray(indices), 0
        network, precise = NETWORKS[name], "highest" if precision == "highest" else "default"

        def loss(own: Mapping[str, Array], batch: Mapping[str, Array]) -> Array:
            if precision == "bf16":
                own = {key: values.astype(jnp.bfloat16) for key, values in own.items()}
                batch = {key: v.astype(jnp.bfloat16) if v.dtype == jnp.float32 else v for key, v in batch.items()}
            logits = network(own, batch, form).astype(jnp.float32)
            targets = batch["labels"] if "labels" in batch else batch["targets"]
            logits = logits.reshape(-1, logits.shape[-1])
            chances = jax.nn.log_softmax(logits)
            return -jnp.take_along_axis(chances, targets.reshape(-1, 1), 1).mean()

        def step(params: Any, slots: Any, split: Any, indices: Any, count: Any) -> Any:
            batch = {key: values[indices] for key, values in split.items()}
            with jax.default_matmul_precision(precise):  # where it is traced, which is not where it is jitted
                gradient = jax.vmap(jax.grad(loss))(params, batch)
            if rule == "sgd":
                return jax.tree.map(lambda p, g: p - lr * g, params, gradient), slots
            first = {key: 0.9 * slots[key][0] + 0.1 * gradient[key] for key in params}
            second = {key: 0.999 * slots[key][1] + 0.001 * gradient[key] ** 2 for key in params}
            rate = lr * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
            small = 1e-8 * jnp.sqrt(1 - 0.999**count)
            new = {key: params[key] - rate * first[key] / (jnp.sqrt(second[key]) + small) for key in params}
            return new, {key: (first[key], second[key]) for key in params}

        self._step = jax.jit(step, donate_argnums=(0, 1))

    def run(self, steps: int) -> None:
        """Advance so many steps and wait."""
        for _ in range(steps):
            self.count += 1
            indices = self.indices[(self.count - 1) % len(self.indices)]
            self.params, self.slots = self._step(self.params, self.slots, self.split, indices, jnp.float32(self.count))
        jax.block_until_ready(self.params)

    def parameters(self) -> dict[str, Any]:
        """By name [n, ...]."""
        return {key: np.asarray(values) for key, values in self.params.items()}
