import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { get } from "../api/client";
import { useAddressPart } from "../shell/address";
import { useRowKeys } from "../ui/row_keys";
import { Failure, Loading, Page } from "../ui/Page";
import { CompareFiles } from "./CompareFiles";
import { CompareSide, SaidSince } from "./CompareSide";
import { messagesText, sessionPath, type Comparison } from "./documents";

/** Two sessions beside each other: where they part, what came of each, and which files differ. */
export default function ComparePage() {
  const [left, right] = [useAddressPart("left"), useAddressPart("right")];
  const compared = useQuery({
    queryKey: ["compare", left, right],
    queryFn: ({ signal }) =>
      get<Comparison>(
        `${sessionPath(left)}/compare/${encodeURIComponent(right)}`,
        { patch: true },
        signal,
      ),
    meta: { live: ["session"] },
  });
  useRowKeys("Compare", "message");
  return (
    <Page
      title="Compare sessions"
      aside={
        <Link
          to={`/compare/${right}/${left}`}
          className="inline-flex min-h-11 items-center text-sm text-accent underline md:min-h-8"
        >
          Change sides
        </Link>
      }
    >
      {compared.isPending && <Loading />}
      {compared.isError && compared.data === undefined && (
        <Failure error={compared.error} retry={() => void compared.refetch()} />
      )}
      {compared.data !== undefined && <Shown comparison={compared.data} />}
    </Page>
  );
}

function Shown({ comparison }: { comparison: Comparison }) {
  const [left, right] = comparison.sessions;
  const common = comparison.common_messages;
  if (left === undefined || right === undefined) return null;
  return (
    <>
      <p className="text-sm text-soft">
        {common === 0 ? (
          "They have no message in common."
        ) : (
          <>
            Both begin with the same {messagesText(common)}, up to{" "}
            <Link
              to={`/sessions/${left.id}`}
              hash={String(common)}
              className="text-accent underline"
            >
              #{common}
            </Link>
            .
          </>
        )}
      </p>
      <div className="grid gap-4 md:grid-cols-2">
        <CompareSide key={left.id} side={left} name="Left" />
        <CompareSide key={right.id} side={right} name="Right" />
      </div>
      <section aria-label="Files" className="flex flex-col gap-2">
        <h2 className="text-xs font-semibold tracking-wide text-faint uppercase">Files</h2>
        <CompareFiles comparison={comparison} />
      </section>
      <div className="grid gap-4 md:grid-cols-2">
        <SaidSince key={left.id} side={left} after={common} name="left" />
        <SaidSince key={right.id} side={right} after={common} name="right" />
      </div>
    </>
  );
}
