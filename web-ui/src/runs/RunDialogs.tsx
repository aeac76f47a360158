import { useState } from "react";

import { givenLimits, LIMIT_NAMES } from "../job/limits";
import { useActing } from "../shell/acting";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Field, Select, TextArea, TextInput } from "../ui/fields";
import { eventsOfRun, runLimitText, type RunDocument } from "./documents";
import { InputFields } from "./InputFields";
import type { RunActs } from "./RunActions";
import { readInputs, typedOf, type Specs, type Typed } from "./run_inputs";

const FORM = "flex flex-col gap-3 p-4";

/** Fork a run at one of its phases, with other inputs if wanted. */
export function ForkDialog({
  run,
  specs,
  at,
  acts,
  onClose,
}: {
  run: RunDocument;
  specs: Specs;
  at: string | null;
  acts: RunActs;
  onClose: () => void;
}) {
  const phases = run.nodes.map(({ path }) => path);
  const [phase, setPhase] = useState(at ?? phases[0] ?? "");
  const [first] = useState<Typed>(() =>
    Object.fromEntries(Object.entries(run.inputs).map(([name, value]) => [name, typedOf(value)])),
  );
  const [typed, setTyped] = useState(first);
  const [problems, setProblems] = useState<Record<string, string>>({});
  const acting = useActing();
  return (
    <Dialog title="Fork the run" onClose={onClose}>
      <form
        noValidate
        className={FORM}
        onSubmit={(event) => {
          event.preventDefault();
          const changed = Object.fromEntries(
            Object.entries(specs).filter(([name]) => typed[name] !== first[name]),
          );
          const read = readInputs(changed, typed);
          setProblems(read.problems);
          if (Object.keys(read.problems).length > 0) return;
          const inputs = Object.keys(read.values).length > 0 ? { inputs: read.values } : {};
          acts.mutate({ verb: "fork", body: { at: phase, ...inputs } }, { onSuccess: onClose });
        }}
      >
        <p className="text-sm text-soft">
          A new run that keeps what is done, except the phase and everything that depends on it.
        </p>
        <Field label="Phase to run again">
          <Select
            value={phase}
            options={phases.map((path) => [path, path] as const)}
            onChange={(event) => setPhase(event.target.value)}
          />
        </Field>
        <InputFields specs={specs} typed={typed} onChange={setTyped} problems={problems} />
        <Button
          look="primary"
          type="submit"
          title={acting.title}
          disabled={acting.disabled || acts.isPending}
        >
          Fork
        </Button>
      </form>
    </Dialog>
  );
}

/** Send an event to a run. */
export function SignalDialog({
  run,
  event,
  acts,
  onClose,
}: {
  run: RunDocument;
  event: string | null;
  acts: RunActs;
  onClose: () => void;
}) {
  const known = eventsOfRun(run);
  const [name, setName] = useState(event ?? known[0] ?? "");
  const [payload, setPayload] = useState("");
  const [problem, setProblem] = useState("");
  const acting = useActing();
  return (
    <Dialog title="Send an event" onClose={onClose}>
      <form
        className={FORM}
        onSubmit={(submitted) => {
          submitted.preventDefault();
          try {
            const value: unknown = payload.trim() === "" ? null : JSON.parse(payload);
            setProblem("");
            const body = { event: name, payload: value };
            acts.mutate({ verb: "signal", body }, { onSuccess: onClose });
          } catch {
            setProblem('The payload is not JSON: a text is written as "text".');
          }
        }}
      >
        <Field label="Event">
          <TextInput
            required
            value={name}
            list="events-of-run"
            onChange={(changed) => setName(changed.target.value)}
          />
        </Field>
        <datalist id="events-of-run">
          {known.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
        <Field label="Payload, as JSON (may be empty)">
          <TextArea
            rows={3}
            value={payload}
            className="font-mono"
            aria-invalid={problem !== ""}
            placeholder='{"version": 2}'
            onChange={(changed) => setPayload(changed.target.value)}
          />
        </Field>
        {problem !== "" && (
          <p role="alert" className="text-sm text-bad">
            {problem}
          </p>
        )}
        <Button
          look="primary"
          type="submit"
          title={acting.title}
          disabled={acting.disabled || acts.isPending || name.trim() === ""}
        >
          Send
        </Button>
      </form>
    </Dialog>
  );
}

/** New maxima for all jobs of a run together. */
export function RaiseDialog({
  run,
  acts,
  onClose,
}: {
  run: RunDocument;
  acts: RunActs;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState<Record<string, string>>({});
  const acting = useActing();
  const limits = givenLimits(typed);
  return (
    <Dialog title="Raise limits of the run" onClose={onClose}>
      <form
        className={FORM}
        onSubmit={(event) => {
          event.preventDefault();
          acts.mutate({ verb: "raise", body: { limits } }, { onSuccess: onClose });
        }}
      >
        {LIMIT_NAMES.map(([name, example]) => {
          const limit = run.limits.find((row) => row.name === name);
          const about =
            limit === undefined
              ? "no limit"
              : `${runLimitText(name, limit.used)} of ${runLimitText(name, limit.maximum)}`;
          return (
            <Field key={name} label={`${name} (${about})`}>
              <TextInput
                value={typed[name] ?? ""}
                placeholder={`e.g. ${example}`}
                autoComplete="off"
                onChange={(event) => setTyped({ ...typed, [name]: event.target.value })}
              />
            </Field>
          );
        })}
        <p className="text-xs text-faint">
          For the whole run, with everything below it. Jobs that wait for a limit continue.
        </p>
        <Button
          look="primary"
          type="submit"
          title={acting.title}
          disabled={acting.disabled || acts.isPending || Object.keys(limits).length === 0}
        >
          Raise and continue
        </Button>
      </form>
    </Dialog>
  );
}
