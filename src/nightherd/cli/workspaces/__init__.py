"""Commands for workspaces: the directories that jobs work in."""
