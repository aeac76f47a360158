import { useId, useState } from "react";

import type { ItemDocument } from "../api/types";
import { LimitFields } from "../job/LimitFields";
import { givenLimits } from "../job/limits";
import { useActing } from "../shell/acting";
import { useMe } from "../shell/session";
import { useShortcuts, type Shortcut } from "../shell/shortcuts";
import { Button, type ButtonLook } from "../ui/Button";
import { TextArea } from "../ui/fields";
import type { Asked } from "./asked";
import { ArgumentEditor, useChanges } from "./ArgumentEditor";
import { useLimitsOf } from "./use_context";
import type { GivenAnswer } from "./use_answer";
import { limitOfCode, noOf, VERDICT_NAMES, yesOf, type Verdict } from "./verdicts";

/** Everything a person can answer to an item that waits. */
export function AnswerForm({
  item,
  asked,
  onAnswer,
  isBusy,
  hasKeys,
}: {
  item: ItemDocument;
  asked: Asked;
  onAnswer: (answer: GivenAnswer) => void;
  isBusy: boolean;
  /** Whether the keys `a`, `x`, `r` and `e` answer this item. */
  hasKeys: boolean;
}) {
  const [text, setText] = useState("");
  const [limits, setLimits] = useState<Record<string, string>>({});
  const label = useId();
  const firstLimit = useId();
  const focusText = () => document.getElementById(label)?.focus();
  const acting = useAnswering(item);
  const changes = useChanges(item, asked);
  const current = useLimitsOf(item);
  const [yes, no] = [yesOf(item), noOf(item)];
  const isLimit = yes === "raise";
  const isReply = yes === "reply";
  const options = asked.kind === "question" ? asked.options : [];

  const missing = (verdict: Verdict): string | null => {
    if ((verdict === "reply" || verdict === "comment") && text.trim() === "") return "Write a text";
    if (verdict === "raise" && Object.keys(givenLimits(limits)).length === 0)
      return "Name a new maximum";
    if (verdict === yes && changes.problem !== null) return changes.problem;
    return null;
  };
  const send = (verdict: Verdict, said = text) => {
    if (acting.disabled || isBusy) return;
    if (missing(verdict) !== null && said === text) {
      if (verdict === "raise") document.getElementById(firstLimit)?.focus();
      else focusText();
      return;
    }
    const takesInput = (verdict === "approve" || verdict === "reply") && changes.input !== null;
    onAnswer({
      verdict,
      ...(said.trim() !== "" && { text: said }),
      ...(takesInput && { input: changes.input }),
      ...(verdict === "raise" && { limits: givenLimits(limits) }),
    });
    if (verdict === "comment") setText("");
  };
  const group = "Inbox";
  const keys: Shortcut[] = [
    ...(yes === null ? [] : [key("a", VERDICT_NAMES[yes], () => send(yes))]),
    ...(no === null ? [] : [key("x", VERDICT_NAMES[no], () => send(no))]),
    key("r", "Write a reply or comment", focusText),
    ...(changes.canEdit
      ? [key("e", "Change what is approved", () => changes.setEditing(!changes.isEditing))]
      : []),
    ...options
      .slice(0, 9)
      .map((option, place) =>
        key(String(place + 1), `Reply: ${option}`, () => send("reply", option)),
      ),
  ];
  useShortcuts(hasKeys ? keys.map((shortcut) => ({ ...shortcut, group })) : []);

  const button = (verdict: Verdict, look: ButtonLook, hint?: string) => {
    const lack = missing(verdict);
    return (
      <Button
        key={verdict}
        look={look}
        className="min-h-10 grow sm:grow-0"
        {...(hasKeys && hint !== undefined && { hint, "aria-keyshortcuts": hint })}
        disabled={acting.disabled || isBusy || lack !== null}
        title={acting.title ?? lack ?? undefined}
        // The Enter key of a field submits the form.
        {...(verdict === yes && (isLimit || isReply)
          ? { type: "submit" as const }
          : { onClick: () => send(verdict) })}
      >
        {verdict === yes && changes.input !== null
          ? `${VERDICT_NAMES[verdict]} with changes`
          : VERDICT_NAMES[verdict]}
      </Button>
    );
  };
  return (
    <form
      aria-label="Answer"
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        send(isReply ? "reply" : isLimit ? "raise" : "comment");
      }}
    >
      {changes.isEditing && <ArgumentEditor changes={changes} item={item} />}
      {isLimit && (
        <LimitFields
          values={limits}
          onChange={setLimits}
          limits={current}
          first={limitOfCode(item.asks.code)}
          firstId={firstLimit}
          disabled={acting.disabled}
        />
      )}
      {options.length > 0 && (
        <div role="group" aria-label="Offered answers" className="flex flex-wrap gap-2">
          {options.map((option, place) => (
            <Button
              key={place}
              className="min-h-10"
              {...(hasKeys && place < 9 && { hint: String(place + 1) })}
              disabled={acting.disabled || isBusy}
              title={acting.title}
              onClick={() => send("reply", option)}
            >
              {option}
            </Button>
          ))}
        </div>
      )}
      <div>
        <label htmlFor={label} className="text-xs text-faint">
          {isReply ? "Your answer" : "Reason or comment"}
        </label>
        <TextArea
          id={label}
          rows={2}
          value={text}
          maxLength={65_536}
          disabled={acting.disabled}
          className="text-base sm:text-sm"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") event.currentTarget.blur();
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              send(isReply ? "reply" : "comment");
            }
          }}
        />
      </div>
      <div className="flex flex-wrap gap-2">
        {yes !== null && button(yes, "primary", "a")}
        {no !== null && button(no, "danger", "x")}
        {changes.canEdit && (
          <Button
            look="ghost"
            className="min-h-10"
            aria-expanded={changes.isEditing}
            {...(hasKeys && { hint: "e" })}
            disabled={acting.disabled}
            onClick={() => changes.setEditing(!changes.isEditing)}
          >
            {changes.isEditing ? "Leave it as it is" : "Edit"}
          </Button>
        )}
        {button("comment", "ghost")}
      </div>
      {acting.title !== undefined && <p className="text-sm text-wait">{acting.title}.</p>}
    </form>
  );
}

function key(keys: string, label: string, run: () => void): Shortcut {
  return { keys, label, group: "", run };
}

/** Whether this person may answer this item: accepting a fleet file is an admin's, and approvers are named. */
function useAnswering(item: ItemDocument): { disabled: boolean; title: string | undefined } {
  const acting = useActing(item.kind === "reload" ? "admin" : "operator");
  const me = useMe();
  if (acting.disabled || item.approvers.length === 0 || item.approvers.includes(me.name)) {
    return acting;
  }
  return {
    disabled: true,
    title: `Only ${item.approvers.join(", ")} may answer; you are ${me.name}`,
  };
}
