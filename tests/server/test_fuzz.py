"""The tools' arguments and the REST API under whatever a model or a program might send."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualwall import tools
from palace.errors import UsageError
from tests.server.serving import CANARY, TOKENS, Served

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
NAMES = [tool.name for tool in tools.TOOLS]
KNOWN = sorted({name for tool in tools.TOOLS for name in tool.arguments.model_fields})
arguments = st.dictionaries(st.sampled_from(KNOWN) | st.text(max_size=10), anything, max_size=5)


@given(st.sampled_from([*NAMES, "other"]) | st.text(max_size=20), arguments | anything)
def test_arguments_are_taken_or_refused_in_short_words(name: str, given: object) -> None:
    fault = ""
    try:
        tool, taken = tools.parse(name, given, write=True)
        assert (tool.name, isinstance(taken, tool.arguments)) == (name, True)
    except UsageError as error:
        fault = str(error)
    assert len(fault) < 2000


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@given(st.sampled_from(NAMES), arguments)
def test_no_arguments_break_a_tool_or_open_a_wall(served: Served, name: str, given: dict[str, Any]) -> None:
    with served.http() as http:
        answer = http.post(
            f"/api/v1/tools/{name}",
            content=json.dumps(given).encode("utf-8", "surrogatepass"),
            headers={"Content-Type": "application/json"},
        )
    assert answer.status_code in {200, 400, 404}, answer.text
    assert CANARY not in answer.text


@pytest.mark.slow
def test_the_api_does_what_its_page_says(served: Served, tmp_path: Path) -> None:
    """By schemathesis: with all of its checks, what the page allows and what it does not."""
    command = [str(Path(sys.executable).with_name("schemathesis")), "run", f"{served.url}/openapi.json"]
    options = ["-H", f"Authorization: Bearer {TOKENS['scout']}", "--max-examples", "15", "--phases", "coverage,fuzzing"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-5000:]
    assert CANARY not in done.stdout
