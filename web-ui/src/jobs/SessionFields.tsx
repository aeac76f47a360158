import { Field, Select, TextInput } from "../ui/fields";
import { spanText } from "../ui/time";
import type { SessionRow } from "../api/types";
import type { SessionChoice, StartForm } from "./start_body";
import { useSessions } from "./use_start";

const MODES: Record<string, string> = {
  fresh_per_job: "a new session",
  persistent: "it continues its session",
  per_channel: "a session for each channel",
};

/** Which session a job is in. */
export function SessionFields({
  form,
  onChange,
  mode,
}: {
  form: StartForm;
  onChange: (change: Partial<StartForm>) => void;
  mode: string;
}) {
  const isNamed = form.choice === "resume" || form.choice === "fork";
  const sessions = useSessions(form.agent, isNamed);
  const known = sessions.data?.map((row) => [row.id, sessionText(row)] as const) ?? [];
  const isKnown = form.session === "" || known.some(([id]) => id === form.session);
  const own =
    MODES[mode] === undefined ? "as the agent is set" : `as the agent is set: ${MODES[mode]}`;
  return (
    <div className="grid gap-2 sm:grid-cols-2">
      <Field label="Session">
        <Select
          className="min-h-10"
          value={form.choice}
          onChange={(event) => onChange({ choice: event.target.value as SessionChoice })}
          options={[
            ["own", own],
            ["new", "a new session"],
            ["kept", "the agent's persistent session"],
            ["channel", "the session of a channel …"],
            ["resume", "continue a session …"],
            ["fork", "a fork of a session …"],
          ]}
        />
      </Field>
      {isNamed && (
        <Field label={form.choice === "fork" ? "Fork of" : "Continue"}>
          <Select
            className="min-h-10"
            value={form.session}
            onChange={(event) => onChange({ session: event.target.value })}
            options={[
              ["", sessions.isPending ? "loading …" : "choose a session"],
              ...(isKnown ? known : [[form.session, form.session] as const, ...known]),
            ]}
          />
        </Field>
      )}
      {(form.choice === "channel" || (form.choice === "own" && mode === "per_channel")) && (
        <Field label="Channel">
          <TextInput
            className="min-h-10"
            value={form.channel}
            autoComplete="off"
            onChange={(event) => onChange({ channel: event.target.value })}
          />
        </Field>
      )}
    </div>
  );
}

function sessionText(session: SessionRow): string {
  const age = spanText((Date.now() - Date.parse(session.last_active_at)) / 1_000);
  const name = session.name ?? session.channel_id ?? session.id;
  return `${name}, ${session.message_count} messages, ${age} ago`;
}
