"""Templates: run-time values put into prompts and scripts.

`${prompt}`, `${turn}`, `${repo}` and `${inputs.NAME}` are filled in when a job runs, `${payload.NAME}` when
a webhook makes one. Everything else that looks like `${NAME}` is a matter of the configuration, which fills it in from the environment on loading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nightherd.errors import InvalidValueError

RUN_TIME_NAMES = frozenset({"prompt", "turn", "repo", "payload"})
"""Names that mean a value of the job, in the texts that may use them; never environment variables there."""

PLACE = re.compile(r"\$\{(prompt|turn|repo|inputs\.[A-Za-z0-9_-]+|payload(?:\.[A-Za-z0-9_-]+)*)\}")


def render(template: str, values: Mapping[str, str]) -> str:
    """`template` with its run-time places filled from `values`; a name without a value is an error."""

    def fill(match: re.Match[str]) -> str:
        try:
            return values[match[1]]
        except KeyError:
            name = match[1]
            what = f"--input {name[7:]}=..." if name.startswith("inputs.") else "value for it"
            raise InvalidValueError(f"${{{name}}} is used but this job has no {what}") from None

    return PLACE.sub(fill, template)


def fill_inputs(text: str, inputs: Mapping[str, str]) -> str:
    """`text` with `${inputs.NAME}` filled in for the inputs that are given; everything else stays as it is."""
    if not inputs:
        return text
    values = {f"inputs.{name}": value for name, value in inputs.items()}
    return PLACE.sub(lambda match: values.get(match[1], match[0]), text)
