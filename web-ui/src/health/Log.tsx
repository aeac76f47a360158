import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { getPage } from "../api/client";
import type { Schemas } from "../api/types";
import { Empty, Failure, Loading } from "../ui/Page";
import { ShowMore } from "../ui/ShowMore";
import { Badge, type Tone } from "../ui/Status";
import { Ago } from "../ui/time";

type Row = Schemas["LogRow"];
const TONES: Record<string, Tone> = { warning: "wait", error: "bad" };

/** What the operator log says, newest first. */
export function Log() {
  const log = useInfiniteQuery({
    queryKey: ["logs"],
    queryFn: ({ pageParam, signal }) =>
      getPage<Row>("/logs", { limit: 50, before: pageParam }, signal),
    initialPageParam: null as string | number | null,
    getNextPageParam: (page) => page.next_before,
  });
  if (log.isPending) return <Loading />;
  if (log.isError) return <Failure error={log.error} retry={() => void log.refetch()} />;
  const rows = log.data.pages.flatMap((page) => page.data);
  if (rows.length === 0) return <Empty>Nothing was logged.</Empty>;
  return (
    <>
      <ol aria-label="Operator log" className="flex flex-col text-sm">
        {rows.map((row, place) => (
          <li key={`${row.at} ${row.event} ${place}`} className="flex flex-wrap gap-x-2 py-0.5">
            <span className="text-faint">
              <Ago at={row.at} />
            </span>
            {row.level !== "info" && <Badge tone={TONES[row.level] ?? "quiet"} text={row.level} />}
            <span className="font-mono text-xs">{row.event}</span>
            <span>{row.agent}</span>
            {row.job !== null && (
              <Link to={`/jobs/${row.job}`} className="font-mono text-xs text-accent underline">
                {row.job}
              </Link>
            )}
            <span className="wrap-anywhere text-soft">{row.message}</span>
          </li>
        ))}
      </ol>
      <ShowMore pages={log} />
    </>
  );
}
