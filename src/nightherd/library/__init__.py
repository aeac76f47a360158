"""THE LIBRARY: nightherd for programs. In: a fleet file and a state directory. Out: jobs, their results and their events.

What is public stands in `nightherd.__init__`; the modules here are where it lives. Not here: anything that
talks to people.
"""
