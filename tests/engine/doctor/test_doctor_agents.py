"""Jobs that wait for an agent which the fleet file does not have any more."""

from __future__ import annotations

from engine.doctor.ward import Ward
from surfaces.drivers import submit_pending


def test_job_that_waits_for_an_agent_which_is_gone_is_a_warning(used: Ward) -> None:
    directory = used.root.parent
    job_id = submit_pending(directory)
    (fine,) = (one for one in used.doctor().data["checks"] if one["name"] == "agents")
    fleet_file = directory / "nightherd.yaml"
    fleet_file.write_text(fleet_file.read_text().replace("name: hello", "name: renamed"))

    examined = used.doctor()

    assert fine["findings"] == []
    assert examined.result.code == 0
    (check,) = (one for one in examined.data["checks"] if one["name"] == "agents")
    (finding,) = check["findings"]
    assert finding["level"] == "warning"
    assert finding["job_id"] == job_id
    assert f"no agent 'hello', and {job_id} waits for it" in finding["message"]
