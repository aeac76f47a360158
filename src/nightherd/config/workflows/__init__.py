"""WORKFLOWS IN THE CONFIGURATION: from workflow files and the `workflows` of fleet files to definitions that can run.

In: `workflows/NAME.yaml` beside a fleet file, inline workflows, the prompts and skills they name. Out: a
`WorkflowDefinition` for each, or every problem with file, line and column. In a workflow `${...}` is an expression of
the run, never a variable of the environment: a run keeps its definition on disk, and no secret may get into it.
"""
