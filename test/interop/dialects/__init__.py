"""The engine dialects, each with a scripted server and a client on the official stubs."""

from importlib import import_module

NAMES = ("vllm", "sglang", "tokenspeed", "trtllm", "mlx")


def dialect(name):
    """The module of a dialect: its classes are `Server` and `Client`."""
    return import_module(f"dialects.{name}")
