"""MCP: tools that come from servers, for runtimes of every kind.

`injected.py` makes a call of a tool that was given to a run, `bridge.py` lets another program make such calls within
limits, `client.py` reaches the servers that an agent declares.
In: `McpServer` and `InjectedMcpServerDef`. Out: answers of tools; what fails is an answer too.
Not here: permissions, events, what a runtime does with an answer.
"""
