"""Numbers of bytes for people."""

GIB, MIB = 2**30, 2**20


def size_text(size: int) -> str:
    """Bytes in GiB, or in MiB below a tenth of one."""
    return f"{size / GIB:.2f} GiB" if size >= GIB / 10 else f"{size / MIB:.2f} MiB"
