# The menu. Every target prepares its own environment first: Python 3.11 or newer is all it needs.

.DEFAULT_GOAL := help
# Without its compiled files, every process that a test starts would compile all it imports again.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help environment demo quick test soak pythons check bench format clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

environment: ## make or refresh .venv from uv.lock (every other target does this by itself)
	@scripts/bootstrap

demo: environment ## watch scripted agents do real work: no key, no network, nothing left behind
	@.venv/bin/nightherd demo
	@command -v nightherd >/dev/null || echo "  (in this checkout: .venv/bin/nightherd)"

quick: environment ## every test that starts no process, in parallel; a minute
	@.venv/bin/python -m pytest -q --quick -n auto --dist worksteal

test: environment ## every check and every test, in parallel
	@scripts/test-packages
	@scripts/test

soak: environment ## the tests that kill and starve processes, with numbers that take an hour
	@scripts/test-packages
	@.venv/bin/python scripts/claude-versions --all
	@NIGHTHERD_SOAK=1 .venv/bin/python -m pytest -n auto --dist worksteal \
	  $$(grep -rlE --include='test_*.py' '^from soak import|mark.either_runtime|^@(every_look|both_looks)' tests)

pythons: ## the demo on every Python that is installed here, each in a fresh clone
	@scripts/pythons

check: environment ## format, lint, types, rings, dependencies and documents; seconds
	@scripts/check

bench: environment ## run every benchmark and print one table of ratios
	@.venv/bin/python benchmarks/run.py

format: environment ## rewrite the source the way the formatter wants it
	@.venv/bin/ruff format
	@.venv/bin/ruff check --fix

clean: ## remove the environment and every cache; the next target makes them again
	@rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	@find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +
