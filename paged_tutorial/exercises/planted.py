"""Find-the-bug exercises: an answer that does what the stub does, bug included, is none yet."""

from __future__ import annotations

import inspect
from types import CodeType

from .play import Unattempted, require_class, require_function


def require_mended(thing, stub: str, sign: str) -> None:
    """Raise Unattempted, with this sign, if a function or class still does what the stub does.

    stub: text that defines one function or class, with the bug. Raises Unusable for a thing
    that cannot be called as that one.
    """
    names: dict[str, object] = {}
    exec(stub, {}, names)
    ((name, planted),) = names.items()
    signature = inspect.signature(planted)
    if inspect.isclass(planted):
        require_class(thing, f"{name}{signature}")
    else:
        require_function(thing, *signature.parameters)
    if _doing(thing) == _doing(planted):
        raise Unattempted(sign)


def _doing(thing) -> object:
    """All that a function or a class does, whatever its variables and its docstring say."""
    if inspect.isclass(thing):
        return {name: _doing(one) for name, one in vars(thing).items() if inspect.isfunction(one)}
    if not inspect.isfunction(thing):
        return None
    return _steps(thing.__code__), thing.__defaults__, thing.__kwdefaults__


def _steps(code: CodeType) -> tuple:
    consts = [_steps(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    # Without a docstring there is a None in its place. Types, since 1 == True == 1.0.
    kept = [(type(one), one) for one in consts if one is not None and not _docstring(one, code)]
    return code.co_code, code.co_names, tuple(kept)


def _docstring(one, code: CodeType) -> bool:
    return isinstance(one, str) and code.co_consts[0] is one
