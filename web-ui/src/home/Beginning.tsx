import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { getPage } from "../api/client";
import type { JobRow } from "../api/types";
import { useAgents } from "../jobs/use_start";
import { StartButton } from "../jobs/StartButton";
import { useMay } from "../shell/session";
import { Card, Empty, Loading } from "../ui/Page";
import { Ago } from "../ui/time";

/** What to do in a fleet in which nothing has happened: ever, or since then. */
export function Beginning({ since }: { since: string }) {
  const newest = useQuery({
    queryKey: ["jobs", "any"],
    queryFn: ({ signal }) => getPage<JobRow>("/jobs", { limit: 1 }, signal),
    meta: { live: ["job"] },
  });
  const last = newest.data?.data[0];
  if (newest.isPending) return <Loading />;
  if (last !== undefined) {
    return (
      <Empty>
        Nothing happened since <Ago at={since} />. The{" "}
        <Link to={`/jobs/${last.id}`} className="text-accent underline">
          last job
        </Link>{" "}
        was asked for <Ago at={last.created_at} />.
      </Empty>
    );
  }
  return <First />;
}

function First() {
  const agents = useAgents().data ?? [];
  const mayStart = useMay("operator");
  return (
    <Card>
      <div className="flex flex-col gap-3 p-4 text-sm">
        <h2 className="text-base font-semibold">Nothing has run yet</h2>
        {agents.length === 0 ? (
          <p>
            This fleet has no agents. Declare one in <code>nightherd.yaml</code>; the daemon takes
            it as soon as you save, or after <code>nightherd reload</code>.
          </p>
        ) : (
          <>
            <p>
              Give one of the agents something to do: here, with the key <kbd>c</kbd>, or in a shell
              with <code>nightherd run {agents[0]?.name} -p TEXT</code>. What it says and does
              appears here as it happens.
            </p>
            <ul aria-label="Agents" className="flex flex-wrap gap-2">
              {agents.map(({ name }) => (
                <li key={name}>
                  {mayStart ? (
                    <StartButton agent={name} name={`Start ${name}`} />
                  ) : (
                    <Link to={`/agents/${encodeURIComponent(name)}`}>{name}</Link>
                  )}
                </li>
              ))}
            </ul>
          </>
        )}
        <p className="text-soft">
          Jobs can also start by themselves:{" "}
          <Link to="/schedules" className="text-accent underline">
            schedules
          </Link>{" "}
          and{" "}
          <Link to="/workflows" className="text-accent underline">
            workflows
          </Link>
          .
        </p>
      </div>
    </Card>
  );
}
