"""Bodies of `application/x-www-form-urlencoded`. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping

from portbook.apis.bodies.body_names import BodyNames
from portbook.apis.parameter_styles import AmbiguousText, as_form_text, as_reserved_text, pairs_of, unsendable
from portbook.model import JSONObject
from portbook.tools.media_types import FORM_TYPE

__all__ = ["UrlencodedBody"]


class UrlencodedBody:
    """Writes the forms of one operation."""

    __slots__ = ("_names",)

    def __init__(self, names: BodyNames) -> None:
        self._names = names

    def write(
        self, fields: JSONObject, place: tuple[str, ...], files: Mapping[str, bytes]
    ) -> tuple[bytes, str]:
        """Return the body and its content type; `place` is where the fields are among the arguments.

        Raises `Refused` where a field has the name of a different one, or items that cannot be told apart.
        """
        written: list[str] = []
        for field, value in fields.items():
            part = self._names.part_of(field)
            encode = as_reserved_text if part.allows_reserved else as_form_text
            checked = None
            try:
                for name, members, text in pairs_of(field, value, part.style, encode):
                    if name != checked:  # a list repeats one name
                        its_place = (*place, field, *members)
                        self._names.require_own(name, field, its_place, is_whole=not members)
                        checked = name
                    written.append(f"{as_form_text(name)}={text}")
            except AmbiguousText as why:
                raise unsendable((*place, field), str(why)) from None
        return "&".join(written).encode("ascii"), FORM_TYPE
