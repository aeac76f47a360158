import { useState } from "react";

import { Button } from "../ui/Button";
import { Failure, Loading } from "../ui/Page";
import type { SessionDocument } from "./documents";
import { ForkTree } from "./ForkTree";
import type { Picked } from "./use_picked";
import { useFamily } from "./use_sessions";

const FEW = 100;
/** As many as the API gives. */
const MOST = 500;

/** The fork tree of a session, with what can be changed about it. */
export function FamilySection({ session, picks }: { session: SessionDocument; picks: Picked }) {
  const [limit, setLimit] = useState(FEW);
  const [hasJobs, setHasJobs] = useState(true);
  const family = useFamily(session.id, limit);
  if (family.isPending) return <Loading />;
  if (family.isError) return <Failure error={family.error} retry={() => void family.refetch()} />;
  const { nodes, is_whole: isWhole, root } = family.data;
  return (
    <section aria-label="Family" className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-x-4 text-sm">
        <h2 className="text-xs font-semibold tracking-wide text-faint uppercase">
          {nodes.length === 1 ? "Jobs" : `Fork tree, ${nodes.length} sessions`}
        </h2>
        {nodes.length > 1 && (
          <label className="flex min-h-11 items-center gap-2 md:min-h-0">
            <input
              type="checkbox"
              checked={hasJobs}
              onChange={(event) => setHasJobs(event.target.checked)}
            />
            jobs
          </label>
        )}
        {!isWhole && (
          <span className="text-faint">
            the nearest of a larger family; it begins with {root}{" "}
            {limit < MOST && (
              <Button look="ghost" disabled={family.isFetching} onClick={() => setLimit(MOST)}>
                Show more
              </Button>
            )}
          </span>
        )}
      </div>
      <ForkTree family={family.data} here={session.id} hasJobs={hasJobs} picks={picks} />
    </section>
  );
}
