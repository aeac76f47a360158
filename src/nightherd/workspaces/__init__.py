"""WORKSPACES: the directories that jobs work in, and snapshots of their files.

In: a workspace's row, its policy, and directories and repositories of the user. Out: worktrees, copies and empty
directories; snapshots as trees in git stores of our own; what differs between two of them.
Not here: who may work where, when a snapshot is taken, and what is on record about it (`engine/workspaces`).
"""
