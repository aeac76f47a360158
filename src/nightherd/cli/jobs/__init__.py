"""Commands for jobs: run, list, show, tail, cancel, retry, resume and fork."""
