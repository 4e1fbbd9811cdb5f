"""What a folder holds, read from the disk. Symlinks are never followed."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from palace.vocabulary import Problem
from sync.filters import Filters
from sync.mirror import unreadable


@dataclass(slots=True)
class Tree:
    """`files`: regular files with (size, mtime_ns); `others`: what is neither file nor folder. Paths relative, with `/`."""

    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def sizes(self) -> dict[str, int]:
        """The files with their sizes in bytes."""
        return {path: size for path, (size, _) in self.files.items()}


def scan(root: Path, filters: Filters | None = None) -> Tree:
    """All below `root` that the filters take (without filters: everything). An absent root is an empty tree.

    A folder that cannot be listed is a Problem.
    """
    tree = Tree()
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    waiting += _look(entry, f"{folder}{entry.name}", filters, tree)
        except FileNotFoundError:
            continue
        except OSError as error:
            tree.problems.append(unreadable(folder.rstrip("/"), error))
    return tree


def _look(entry: os.DirEntry[str], path: str, filters: Filters | None, tree: Tree) -> Iterator[str]:
    """Take one entry into the tree; yields a folder that is still to be listed."""
    if entry.is_dir(follow_symlinks=False):
        if filters is None or filters.enters(path):
            tree.folders.append(path)
            yield f"{path}/"
    elif filters is not None and not filters.takes(path):
        return
    elif entry.is_file(follow_symlinks=False):
        with contextlib.suppress(FileNotFoundError):
            status = entry.stat(follow_symlinks=False)
            tree.files[path] = (status.st_size, status.st_mtime_ns)
    else:
        tree.others.append(path)
