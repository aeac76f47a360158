import { useQuery } from "@tanstack/react-query";

import { get } from "../api/client";
import type { AgentRow } from "../api/types";
import { Field, Select } from "../ui/fields";

/** The agent that continues a session which was imported: it belongs to none of the fleet yet. */
export function AgentField({
  value,
  onChange,
}: {
  value: string;
  onChange: (agent: string) => void;
}) {
  const agents = useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => get<AgentRow[]>("/agents", undefined, signal),
    meta: { live: ["agent"] },
  });
  return (
    <Field label="Agent that continues it">
      <Select
        value={value}
        onChange={(event) => onChange(event.target.value)}
        options={[
          ["", "the one that works in its directory"],
          ...(agents.data ?? []).map(({ name }) => [name, name] as const),
        ]}
      />
    </Field>
  );
}
