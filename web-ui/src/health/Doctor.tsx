import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { request, type Envelope } from "../api/client";
import type { Schemas } from "../api/types";
import { useActing } from "../shell/acting";
import { Button } from "../ui/Button";
import { Failure, Loading } from "../ui/Page";
import { Badge, type Tone } from "../ui/Status";
import { Ago } from "../ui/time";

type Report = Schemas["DoctorDocument"];
type Check = Schemas["CheckRow"];
const TONES: Record<Check["level"], Tone> = { ok: "good", warning: "wait", problem: "bad" };
const RANKS: Record<Check["level"], number> = { problem: 0, warning: 1, ok: 2 };

/** What `nightherd doctor` finds. It changes nothing; the command repairs. */
export function Doctor() {
  const [isWhole, setWhole] = useState(false);
  const verifying = useActing();
  const report = useQuery({
    queryKey: ["doctor", isWhole],
    queryFn: ({ signal }) =>
      request<Envelope<Report>>("/doctor", { query: { verify: isWhole }, signal }),
    staleTime: 5 * 60_000,
  });
  return (
    <div className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-2">
        <Button disabled={report.isFetching} onClick={() => void report.refetch()}>
          Check again
        </Button>
        <Button
          {...verifying}
          disabled={verifying.disabled || report.isFetching || isWhole}
          onClick={() => setWhole(true)}
        >
          Read every journal too
        </Button>
        {report.isSuccess && (
          <span className="text-xs text-faint">
            checked <Ago at={report.data.as_of} />
          </span>
        )}
        {report.isFetching && <span className="text-xs text-faint">checking …</span>}
      </div>
      {report.isPending && <Loading />}
      {report.isError && <Failure error={report.error} retry={() => void report.refetch()} />}
      {report.isSuccess && <Checks checks={report.data.data.checks} />}
    </div>
  );
}

/** What is wrong, each with its remedy; what is well is one line that opens. */
function Checks({ checks }: { checks: readonly Check[] }) {
  const wrong = checks.filter(({ level }) => level !== "ok");
  const well = checks.filter(({ level }) => level === "ok");
  return (
    <>
      {wrong.length > 0 && (
        <CheckList
          label="Problems and warnings"
          checks={[...wrong].sort((left, right) => RANKS[left.level] - RANKS[right.level])}
        />
      )}
      <details className="text-sm">
        <summary className="flex min-h-10 items-center gap-2 md:min-h-8">
          <Badge tone="good" text="ok" />
          {wrong.length === 0 ? `All ${well.length} checks` : `${well.length} other checks`}
          <span aria-hidden className="text-faint">
            ▾
          </span>
        </summary>
        <CheckList label="Passed checks" checks={well} />
      </details>
    </>
  );
}

function CheckList({ label, checks }: { label: string; checks: readonly Check[] }) {
  return (
    <ul aria-label={label} className="flex flex-col divide-y divide-line text-sm">
      {checks.map((check) => (
        <CheckView key={check.name} check={check} />
      ))}
    </ul>
  );
}

function CheckView({ check }: { check: Check }) {
  return (
    <li className="flex flex-col gap-1 py-1.5">
      <span className="flex flex-wrap items-center gap-2">
        <Badge tone={TONES[check.level]} text={check.level} />
        <span className="font-medium">{check.title}</span>
        <span className="wrap-anywhere text-faint">{check.notes.join("; ")}</span>
      </span>
      {check.findings.map((finding) => (
        <span
          key={`${finding.message} ${finding.path} ${finding.job_id}`}
          className="pl-4 wrap-anywhere"
        >
          {finding.message}
          {finding.path !== null && <span className="font-mono text-xs"> {finding.path}</span>}
          {finding.job_id !== null && (
            <Link to={`/jobs/${finding.job_id}`} className="pl-1 text-accent underline">
              job
            </Link>
          )}
          {finding.remedy !== null && (
            <span className="block text-xs text-faint">{finding.remedy}</span>
          )}
        </span>
      ))}
    </li>
  );
}
