"""Landing: the changes of a workspace brought to the user's files, branches and remotes.

A landing computes its result in a scratch directory, records what is going to change, and changes it. A process that is
killed on the way leaves the record; the next landing finishes or undoes it.
"""
