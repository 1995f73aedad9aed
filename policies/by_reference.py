"""Records handed from kernel to kernel as one pointer instead of array by array.

numba passes a NamedTuple by value: each of the fifty arrays of a decision becomes seven arguments
of every kernel that is called, which were most of the code to be compiled. `by_reference` puts the
record on the caller's stack once; what it returns has the same fields, for reading, and is valid
until the caller returns.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    type_callable,
)


def by_reference(record: Any) -> Any:
    """The NamedTuple itself in plain Python; in a kernel, called on a record by value, a reference
    to it."""
    return record


class ReferenceType(types.Type):  # type: ignore[misc]
    """numba's type of a NamedTuple by reference."""

    def __init__(self, record: Any) -> None:
        self.record = record
        super().__init__(name=f"by_reference({record})")


register_model(ReferenceType)(models.OpaqueModel)  # an untyped pointer


@type_callable(by_reference)
def _type_of_call(context: Any) -> Any:
    def typer(record: types.Type) -> types.Type | None:
        return ReferenceType(record) if isinstance(record, types.BaseNamedTuple) else None

    return typer


@lower_builtin(by_reference, types.BaseNamedTuple)
def _store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    stored = cgutils.alloca_once_value(builder, arguments[0])
    return builder.bitcast(stored, context.get_value_type(signature.return_type))


@infer_getattr
class _FieldTypes(AttributeTemplate):  # type: ignore[misc]
    key = ReferenceType

    def generic_resolve(self, typ: Any, attr: str) -> Any:  # type: ignore[override]
        fields = typ.record.fields
        return typ.record[fields.index(attr)] if attr in fields else None


@lower_getattr_generic(ReferenceType)
def _load(context: Any, builder: Any, reference: ReferenceType, pointer: Any, name: str) -> Any:
    place = reference.record.fields.index(name)
    record = context.get_value_type(reference.record).as_pointer()
    field = builder.gep(
        builder.bitcast(pointer, record), [ir.IntType(32)(0), ir.IntType(32)(place)], inbounds=True
    )
    return impl_ret_borrowed(context, builder, reference.record[place], builder.load(field))
