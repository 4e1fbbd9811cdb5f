"""Whether one folder lies in another, whatever symlinks, mounts or spellings hide it. Looks at the disk, changes nothing."""

import os
from pathlib import Path


def contains(outer: Path, inner: Path) -> bool:
    """Whether `inner` is `outer` or lies in it, after every symlink is followed. Neither needs to exist."""
    real_outer, real_inner = Path(os.path.realpath(outer)), Path(os.path.realpath(inner))
    return any(_same(real_outer, place) for place in (real_inner, *real_inner.parents))


def _same(one: Path, other: Path) -> bool:
    """Equal names, or two names of one folder: a bind mount, a disk that ignores case."""
    if one == other:
        return True
    try:
        return one.samefile(other)
    except OSError:
        return False
