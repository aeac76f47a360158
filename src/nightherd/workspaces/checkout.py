"""Writing the files of a commit or of a snapshot into a directory, by git and with our own configuration.

Git never follows links that lead out of the directory, and no filter runs. A commit is written as its `.gitattributes`
say (line endings, encodings), a snapshot byte for byte.
"""

from __future__ import annotations

import os
from pathlib import Path

from nightherd.workspaces.git import Git, failure
from nightherd.workspaces.stores import Store

LATER_NS = 2_000_000_000


def check_out(git: Git, store: Store, commit: str, top: Path, index: Path) -> None:
    """Write the files of a commit into an empty directory, and an index of them."""
    place = store.checkout(work_tree=str(top), index=str(index))
    git.run(
        place, "read-tree", "-u", "--reset", commit, doing="the files of a commit cannot be written"
    )


def restore(git: Git, store: Store, tree: str, top: Path, index: Path) -> None:
    """Turn the files that `index` lists into those of a snapshot: only what differs is written or removed.

    Nothing may have changed the files since the index was written.
    """
    try:
        status = index.stat()
        # Git would read every file that is as young as the index, and take those that a checkout converted for changed.
        os.utime(index, ns=(status.st_atime_ns, status.st_mtime_ns + LATER_NS))
    except OSError as error:
        raise failure(error, f"the index '{index}' cannot be used") from error
    place = store.reading(work_tree=str(top), index=str(index))
    git.run(
        place, "read-tree", "-u", "--reset", tree, doing="the files of a snapshot cannot be written"
    )
