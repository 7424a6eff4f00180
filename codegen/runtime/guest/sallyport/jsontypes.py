"""Types of JSON and of specs (codegen/spec.go), for type checkers. Nothing imports this module at run time."""

from __future__ import annotations

from typing import Any, TypedDict, Union

JSON = Union[None, bool, int, float, str, "list[JSON]", "dict[str, JSON]"]
Object = dict[str, JSON]

# A type is a letter, the position of a definition, or one of these members.
Type = Union[str, int, "Spec"]
Member = tuple[Type, bool]  # whether it is required
Spec = TypedDict(
    "Spec",
    {
        "o": "dict[str, Type]",  # members of an object
        "x": "Type",  # its further members
        "e": "list[JSON]",  # values
        "u": "list[Type]",  # arms of a union
        "m": "Type",  # values of a map
        "t": "list[Type]",  # first elements of a list
        "l": "Type",  # its further elements
        ".": "dict[str, Member]",  # members, as check.py keeps them
    },
    total=False,
)


class Paging(TypedDict):
    by: str
    name: str


class Pages(Paging, total=False):
    """How a tool pages (codegen/pages.go)."""

    first: int
    items: list[str]
    next: list[str]
    more: list[str]


class Signed(TypedDict):
    sig: str


class Wrapper(Signed, total=False):
    """The spec of a wrapper."""

    args: Spec
    defs: list[Type]
    wrap: bool
    pages: Pages


Frame = dict[str, Any]  # a message of the bridge
