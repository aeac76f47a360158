"""COMMAND: runs the commands of workflows, each as one call on record. Built in: no agent of a fleet file can name it."""
