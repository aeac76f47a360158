"""THE LANGUAGE: what nightherd talks about, and the rules that hold for it.

Frozen values, transition tables and pure decisions, one file per noun. Every other room speaks these words.
In: plain values, and time and randomness as arguments. Out: values and decisions.
Not here: input or output, clocks, threads, async, drivers.

| word | means |
|---|---|
| Fleet, Agent | the declared set; one declared agent (configuration, never a process) |
| Job | one durable request for one agent to do one piece of work |
| Execution | one try at a job by one worker, fenced by its epoch |
| Session | resumable, forkable conversation context, outliving jobs |
| Turn | one model answer and its tool calls |
| Event, Journal | an immutable fact with a sequence number; the append-only log of them |
| Change | one state change as a value: what it wants, what it expects to find |
| Schedule, Trigger | a rule in time; the reason a job exists |
| Runtime, Worker | what executes an agent; the process that claims jobs |
"""
