import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";

import { get, post, remove } from "../api/client";
import type { Role, Schemas } from "../api/types";
import { useActing } from "../shell/acting";
import { notify, notifyError } from "../shell/toasts";
import { Button } from "../ui/Button";
import { copyText } from "../ui/copy";
import { Dialog } from "../ui/Dialog";
import { Field, Select, TextInput } from "../ui/fields";
import { Failure, Loading, Section } from "../ui/Page";
import { State } from "../ui/Status";
import { Table } from "../ui/Table";
import { Ago } from "../ui/time";

type Token = Schemas["TokenRow"];
const ROLES = [
  ["viewer", "viewer: reads"],
  ["operator", "operator: also starts, cancels and answers"],
  ["admin", "admin: everything"],
] as const;

/** Named tokens: who may log in or use the API, and as what. */
export function Tokens() {
  const client = useQueryClient();
  const acting = useActing("admin");
  const form = useRef<HTMLFormElement>(null);
  const [made, setMade] = useState<Schemas["NewTokenDocument"] | null>(null);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const tokens = useQuery({
    queryKey: ["tokens"],
    queryFn: ({ signal }) => get<Token[]>("/tokens", undefined, signal),
  });
  const refresh = () => void client.invalidateQueries({ queryKey: ["tokens"] });
  const add = useMutation({
    mutationFn: (body: { name: string; role: Role }) =>
      post<Schemas["NewTokenDocument"]>("/tokens", body),
    onSuccess: (token) => {
      setMade(token);
      form.current?.reset();
      refresh();
    },
    onError: notifyError,
  });
  const revoke = useMutation({
    mutationFn: (name: string) => remove<Token>(`/tokens/${encodeURIComponent(name)}`),
    onSuccess: (token) => {
      notify(`revoked ${token.name}`);
      refresh();
    },
    onError: notifyError,
    onSettled: () => setRevoking(null),
  });
  return (
    <Section title="Tokens">
      <form
        ref={form}
        className="mb-3 flex flex-wrap items-end gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          const given = new FormData(event.currentTarget);
          add.mutate({ name: textOf(given, "name"), role: textOf(given, "role") as Role });
        }}
      >
        <Field label="Name">
          <TextInput name="name" required maxLength={100} autoComplete="off" />
        </Field>
        <Field label="Role">
          <Select name="role" options={ROLES} defaultValue="operator" />
        </Field>
        <Button type="submit" {...acting} disabled={acting.disabled || add.isPending}>
          Add token
        </Button>
      </form>
      {tokens.isPending && <Loading />}
      {tokens.isError && <Failure error={tokens.error} retry={refresh} />}
      {tokens.isSuccess && tokens.data.length === 0 && (
        <p className="text-sm text-faint">No token yet: programs and other people need one.</p>
      )}
      {tokens.isSuccess && tokens.data.length > 0 && (
        <Table
          label="All tokens"
          rows={tokens.data}
          rowKey={(token) => `${token.name} ${token.created_at}`}
          columns={[
            { head: "name", cell: (token) => token.name },
            { head: "role", cell: (token) => token.role },
            { head: "added", cell: (token) => <Ago at={token.created_at} /> },
            { head: "by", cell: (token) => token.created_by },
            {
              head: "actions",
              cell: (token) =>
                token.revoked_at === null ? (
                  <Button
                    look="danger"
                    aria-label={`Revoke ${token.name}`}
                    {...acting}
                    onClick={() => setRevoking(token)}
                  >
                    Revoke
                  </Button>
                ) : (
                  <State status="revoked" title={`by ${token.revoked_by ?? "unknown"}`} />
                ),
            },
          ]}
        />
      )}
      {made !== null && <NewToken token={made} onClose={() => setMade(null)} />}
      {revoking !== null && (
        <Dialog title={`Revoke ${revoking.name}?`} onClose={() => setRevoking(null)}>
          <div className="flex flex-col gap-3 p-4 text-sm">
            <p>Its browsers are logged out and its programs are refused at once.</p>
            <Button
              look="danger"
              {...acting}
              disabled={acting.disabled || revoke.isPending}
              onClick={() => revoke.mutate(revoking.name)}
            >
              Revoke
            </Button>
          </div>
        </Dialog>
      )}
    </Section>
  );
}

/** The token, which is shown once. */
function NewToken({ token, onClose }: { token: Schemas["NewTokenDocument"]; onClose: () => void }) {
  return (
    <Dialog title={`Token ${token.name}`} onClose={onClose}>
      <div className="flex flex-col gap-3 p-4 text-sm">
        <p>Copy it now: it is not shown again.</p>
        <code className="rounded bg-raised p-2 font-mono wrap-anywhere">{token.token}</code>
        <Button look="primary" onClick={() => void copyText(token.token).catch(notifyError)}>
          Copy
        </Button>
      </div>
    </Dialog>
  );
}

function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value.trim() : "";
}
