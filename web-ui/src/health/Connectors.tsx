import { Link } from "@tanstack/react-router";

import type { Schemas, StatusDocument } from "../api/types";
import { Section } from "../ui/Page";
import { Badge, type Tone } from "../ui/Status";
import { Table } from "../ui/Table";
import { Ago } from "../ui/time";

type Bot = Schemas["BotRow"];
const TONES: Record<string, Tone> = {
  connected: "good",
  starting: "busy",
  disconnected: "wait",
  unavailable: "bad",
  refused: "bad",
};

/** The bots of chat platforms: whether each is connected, and what waits or was not sent. */
export function Connectors({ status }: { status: StatusDocument }) {
  if (status.bots.length === 0) return null;
  return (
    <Section title="Connectors">
      <Table
        label="Bots of chat platforms"
        rows={status.bots}
        rowKey={({ bot }) => bot}
        columns={[
          { head: "bot", cell: ({ bot, name }) => (name === null ? bot : `${name} (${bot})`) },
          { head: "on", cell: ({ platform }) => platform },
          {
            head: "agent",
            cell: ({ agent }) => (
              <Link
                to={`/agents/${encodeURIComponent(agent)}`}
                className="text-accent hover:underline"
              >
                {agent}
              </Link>
            ),
          },
          { head: "state", cell: (bot) => <BotState bot={bot} /> },
          { head: "waiting", cell: (bot) => bot.waiting_messages, isNumber: true },
          { head: "not sent", cell: (bot) => <Unsent bot={bot} />, isNumber: true },
        ]}
      />
    </Section>
  );
}

function BotState({ bot }: { bot: Bot }) {
  return (
    <span className="inline-flex flex-wrap items-baseline gap-x-2">
      <Badge tone={TONES[bot.status] ?? "quiet"} text={bot.status} />
      {bot.since !== null && (
        <span className="text-xs text-faint">
          since <Ago at={bot.since} />
        </span>
      )}
      {bot.error !== null && <span className="wrap-anywhere text-bad">{bot.error}</span>}
    </span>
  );
}

function Unsent({ bot }: { bot: Bot }) {
  if (bot.failed_posts === 0) return 0;
  return (
    <span className="whitespace-normal text-bad" title={bot.last_failure ?? ""}>
      {bot.failed_posts}
      {bot.last_failure !== null && `: ${bot.last_failure}`}
    </span>
  );
}
