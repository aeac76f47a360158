import { useQuery } from "@tanstack/react-query";

import { get } from "../api/client";
import type { StatusDocument } from "../api/types";
import { ConfigView } from "../agents/ConfigView";
import { Failure, Loading, Page, Section } from "../ui/Page";
import { Access } from "./Access";
import { Connectors } from "./Connectors";
import { Daemon } from "./Daemon";
import { Doctor } from "./Doctor";
import { Log } from "./Log";
import { Notifications } from "./Notifications";
import { Retention } from "./Retention";
import { Troubles } from "./Troubles";

/** Whether the fleet is well: what runs it, what is wrong, what will be deleted, and what was logged. */
export default function HealthPage() {
  const status = useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => get<StatusDocument>("/status", undefined, signal),
    meta: { live: ["inbox", "agent"] },
  });
  return (
    <Page title="Health">
      {status.isPending && <Loading />}
      {status.isError && <Failure error={status.error} retry={() => void status.refetch()} />}
      {status.isSuccess && (
        <>
          <Section title="Daemon">
            <Daemon status={status.data} />
          </Section>
          <Connectors status={status.data} />
          <Troubles status={status.data} />
        </>
      )}
      <Section title="Checks">
        <Doctor />
      </Section>
      <Section title="Notifications">
        <Notifications />
      </Section>
      <Section title="Retention">
        <Retention />
      </Section>
      <Access />
      <Section title="Configuration of the fleet">
        <ConfigView path="/config" />
      </Section>
      <Section title="Operator log">
        <Log />
      </Section>
    </Page>
  );
}
