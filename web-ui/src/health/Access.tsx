import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { get } from "../api/client";
import type { Schemas } from "../api/types";
import { useMay } from "../shell/session";
import { Failure, Loading, Section } from "../ui/Page";
import { State } from "../ui/Status";
import { Table } from "../ui/Table";
import { Ago } from "../ui/time";

type Token = Schemas["UsedTokenRow"];
const SHOWN = 20;

/** The named tokens: who may get in, as what, and which are in use. */
export function Access() {
  const mayLook = useMay("admin");
  const tokens = useQuery({
    queryKey: ["tokens"],
    queryFn: ({ signal }) => get<Token[]>("/tokens", undefined, signal),
    enabled: mayLook,
  });
  const rows = (tokens.data ?? []).toSorted(
    (left, right) => Number(left.revoked_at !== null) - Number(right.revoked_at !== null),
  );
  const accepted = rows.filter((token) => token.revoked_at === null).length;
  return (
    <Section title="Tokens" aside={tokens.isSuccess ? `${accepted} accepted` : ""}>
      {!mayLook && <p className="text-sm text-faint">Admins see them.</p>}
      {mayLook && tokens.isPending && <Loading />}
      {tokens.isError && <Failure error={tokens.error} retry={() => void tokens.refetch()} />}
      {tokens.isSuccess && rows.length === 0 && (
        <p className="text-sm text-faint">No named token was added.</p>
      )}
      {rows.length > 0 && (
        <Table
          label="Named tokens"
          rows={rows.slice(0, SHOWN)}
          rowKey={(token) => `${token.name} ${token.created_at}`}
          columns={[
            { head: "name", cell: (token) => token.name },
            { head: "role", cell: (token) => token.role },
            {
              head: "last used",
              cell: (token) =>
                token.last_used_at === null ? (
                  "not since the daemon started"
                ) : (
                  <Ago at={token.last_used_at} />
                ),
            },
            {
              head: "state",
              cell: (token) =>
                token.revoked_at === null ? (
                  "accepted until it is revoked"
                ) : (
                  <State status="revoked" title={`by ${token.revoked_by ?? "unknown"}`} />
                ),
            },
          ]}
        />
      )}
      {mayLook && (
        <p className="pt-1 text-sm">
          <Link to="/settings" className="text-accent underline">
            Add or revoke tokens
          </Link>
          {rows.length > SHOWN && `; ${rows.length - SHOWN} more are there`}
        </p>
      )}
    </Section>
  );
}
