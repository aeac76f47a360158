"""Templates: run-time values put into prompts and scripts.

`${prompt}`, `${turn}`, `${repo}` and `${inputs.NAME}` are filled in when a job runs, `${payload.NAME}` when
a webhook makes one. Everything else that looks like `${NAME}` is a matter of the configuration, which fills it in from the environment on loading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

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


def input_text(value: Any) -> str:
    """An input as templates have it: text as it is, every other JSON value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def input_values(inputs: Mapping[str, Any]) -> dict[str, str]:
    """The inputs by the names that templates use."""
    return {f"inputs.{name}": input_text(value) for name, value in inputs.items()}


def fill_inputs(text: str, inputs: Mapping[str, Any]) -> str:
    """`text` with `${inputs.NAME}` filled in for the inputs that are given; everything else stays as it is."""
    if not inputs:
        return text
    values = input_values(inputs)
    return PLACE.sub(lambda match: values.get(match[1], match[0]), text)
