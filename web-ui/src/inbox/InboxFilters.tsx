import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";

import { get } from "../api/client";
import type { AgentRow } from "../api/types";
import type { Search } from "../shell/address";
import { Select } from "../ui/fields";
import { KIND_NAMES } from "./verdicts";

/** Which kinds and whose items are listed; kept in the address. */
export function InboxFilters({ search }: { search: Search }) {
  const navigate = useNavigate();
  const agents = useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => get<AgentRow[]>("/agents", undefined, signal),
    meta: { live: ["agent"] },
  });
  const names = agents.data?.map(({ name }) => name) ?? [];
  const known = search.agent === undefined || names.includes(search.agent);
  const set = (change: Search) =>
    void navigate({ to: "/inbox", search: { ...search, ...change }, replace: true });
  return (
    <div className="flex gap-2">
      <Select
        aria-label="Kind"
        className="min-h-10 min-w-0 flex-1 md:min-h-9"
        value={search.kind ?? ""}
        onChange={(event) => set({ kind: event.target.value || undefined })}
        options={[["", "all kinds"], ...Object.entries(KIND_NAMES)]}
      />
      <Select
        aria-label="Agent"
        className="min-h-10 min-w-0 flex-1 md:min-h-9"
        value={search.agent ?? ""}
        onChange={(event) => set({ agent: event.target.value || undefined })}
        options={[
          ["", "all agents"],
          ...(known ? names : [...names, search.agent ?? ""]).map((name) => [name, name] as const),
        ]}
      />
    </div>
  );
}
