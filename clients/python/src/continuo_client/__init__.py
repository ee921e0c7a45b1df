"""A client of the HTTP API of Continuo, a conversation log and context engine for LLM agents."""

from . import types
from .client import Continuo
from .transport import ContinuoError

__all__ = ["Continuo", "ContinuoError", "types"]
