import { useState } from "react";

import { useActing } from "../shell/acting";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Field, TextArea, TextInput } from "../ui/fields";
import { AgentField } from "./AgentField";
import type { SessionDocument } from "./documents";
import type { SessionActs } from "./use_session_acts";

const FORM = "flex flex-col gap-3 p-4";

/** Fork a session after a message. */
export function ForkDialog({
  session,
  at,
  acts,
  onClose,
}: {
  session: SessionDocument;
  /** The last message that the fork keeps. */
  at: number;
  acts: SessionActs;
  onClose: () => void;
}) {
  const [message, setMessage] = useState(String(at));
  const [name, setName] = useState("");
  const [prompt, setPrompt] = useState("");
  const [agent, setAgent] = useState("");
  const acting = useActing();
  const kept = Number(message);
  const isRight = /^\d+$/.test(message) && kept <= session.message_count;
  return (
    <Dialog title="Fork the session" onClose={onClose}>
      <form
        className={FORM}
        onSubmit={(event) => {
          event.preventDefault();
          acts.fork.mutate(
            {
              at_message: kept,
              ...(name.trim() !== "" && { name: name.trim() }),
              ...(prompt.trim() !== "" && { prompt, ...(agent !== "" && { agent }) }),
            },
            { onSuccess: onClose },
          );
        }}
      >
        <p className="text-sm text-soft">
          The fork keeps the messages up to this one. The session itself stays as it is
          {session.workspace_id === null
            ? ", and both work in the same directory."
            : "; the fork gets the files as they were then."}
        </p>
        <Field label={`After message (0 to ${session.message_count})`}>
          <TextInput
            inputMode="numeric"
            value={message}
            aria-invalid={!isRight}
            onChange={(event) => setMessage(event.target.value.trim())}
          />
        </Field>
        <Field label="Prompt (may be empty: then nothing runs yet)">
          <TextArea
            rows={3}
            value={prompt}
            onChange={(event) => setPrompt(event.target.value)}
            className="text-base md:text-sm"
          />
        </Field>
        {session.imported_from !== null && prompt.trim() !== "" && (
          <AgentField value={agent} onChange={setAgent} />
        )}
        <Field label="Name of the fork (may be empty)">
          <TextInput
            value={name}
            maxLength={100}
            onChange={(event) => setName(event.target.value)}
          />
        </Field>
        <Button
          look="primary"
          type="submit"
          title={acting.title}
          disabled={acting.disabled || acts.fork.isPending || !isRight}
        >
          {prompt.trim() === "" ? "Fork" : "Fork and run"}
        </Button>
      </form>
    </Dialog>
  );
}

export function RenameDialog({
  session,
  acts,
  onClose,
}: {
  session: SessionDocument;
  acts: SessionActs;
  onClose: () => void;
}) {
  const [name, setName] = useState(session.name ?? "");
  const acting = useActing();
  return (
    <Dialog title="Rename the session" onClose={onClose}>
      <form
        className={FORM}
        onSubmit={(event) => {
          event.preventDefault();
          acts.rename.mutate(name.trim() === "" ? null : name.trim(), { onSuccess: onClose });
        }}
      >
        <Field label="Name (empty: none)">
          <TextInput
            value={name}
            maxLength={100}
            autoFocus
            onChange={(event) => setName(event.target.value)}
          />
        </Field>
        <Button
          look="primary"
          type="submit"
          title={acting.title}
          disabled={acting.disabled || acts.rename.isPending}
        >
          Rename
        </Button>
      </form>
    </Dialog>
  );
}

export function EndDialog({ acts, onClose }: { acts: SessionActs; onClose: () => void }) {
  const acting = useActing("admin");
  return (
    <Dialog title="End the session?" onClose={onClose}>
      <div className={FORM}>
        <p className="text-sm">
          No job continues in it, and lists leave it out. Its record and its journals stay: you can
          still show, fork and export it.
        </p>
        <Button
          look="danger"
          className="self-start"
          title={acting.title}
          disabled={acting.disabled || acts.end.isPending}
          onClick={() => acts.end.mutate(undefined, { onSuccess: onClose })}
        >
          End the session
        </Button>
      </div>
    </Dialog>
  );
}
