import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { get, getPage } from "../api/client";
import type { AgentRow, JobRow } from "../api/types";
import { classes } from "../ui/classes";
import { Dialog } from "../ui/Dialog";
import { NAVIGATION } from "./pages";
import { useMay } from "./session";
import { useRegisteredShortcuts } from "./shortcuts";

interface Command {
  id: string;
  label: string;
  detail: string;
  run: () => void;
}

/** Finds pages, agents, recent jobs and everything that a key does. */
export default function Palette({
  onClose,
  onStart,
}: {
  onClose: () => void;
  onStart: () => void;
}) {
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const commands = useCommands(words, onStart);
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = commands
    .filter(({ label, detail }) => {
      const text = `${label} ${detail}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    })
    .slice(0, 12);
  const current = Math.min(chosen, Math.max(0, shown.length - 1));
  const run = (command: Command | undefined) => {
    if (command === undefined) return;
    onClose();
    command.run();
  };
  return (
    <Dialog title="Commands" onClose={onClose} className="mt-[10vh]">
      <input
        // The window is opened to type into it.
        autoFocus
        role="combobox"
        aria-label="Command"
        aria-expanded
        aria-controls="palette"
        aria-activedescendant={shown.length === 0 ? undefined : `command-${current}`}
        placeholder="A page, an agent, a job, an action or words to search for"
        value={words}
        onChange={(event) => {
          setWords(event.target.value);
          setChosen(0);
        }}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Enter") run(shown[current]);
          else if (event.key === "ArrowDown") setChosen(Math.min(current + 1, shown.length - 1));
          else if (event.key === "ArrowUp") setChosen(Math.max(current - 1, 0));
          else return;
          event.preventDefault();
        }}
        className="w-full border-b border-line bg-panel px-4 py-3 -outline-offset-2"
      />
      <ul id="palette" role="listbox" aria-label="Commands" className="p-1">
        {shown.map((command, place) => (
          <li
            key={command.id}
            id={`command-${place}`}
            role="option"
            aria-selected={place === current}
            onClick={() => run(command)}
            className={classes(
              "flex cursor-pointer items-baseline gap-2 rounded-md px-3 py-1.5 text-sm hover:bg-hover",
              place === current && "bg-accent-soft",
            )}
          >
            <span className="truncate">{command.label}</span>
            <span className="ml-auto shrink-0 text-xs text-faint">{command.detail}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function useCommands(words: string, onStart: () => void): Command[] {
  const navigate = useNavigate();
  const mayStart = useMay("operator");
  const shortcuts = useRegisteredShortcuts();
  const agents = useQuery({
    queryKey: ["agents"],
    queryFn: ({ signal }) => get<AgentRow[]>("/agents", undefined, signal),
    meta: { live: ["agent"] },
  });
  const jobs = useQuery({
    queryKey: ["jobs", "newest"],
    queryFn: ({ signal }) => getPage<JobRow>("/jobs", { limit: 30 }, signal),
    meta: { live: ["job"] },
  });
  const go = (to: string, search = {}) => void navigate({ to, search });
  const commands: Command[] = NAVIGATION.map(({ path, name = "" }) => ({
    id: path,
    label: name,
    detail: "page",
    run: () => go(path),
  }));
  if (mayStart) {
    commands.push({ id: "start", label: "Start a job", detail: "action", run: onStart });
  }
  for (const { keys, label, group, run } of shortcuts) {
    if (group !== "Go to" && group !== "Everywhere") {
      commands.push({ id: `key ${keys}`, label, detail: group, run });
    }
  }
  for (const agent of agents.data ?? []) {
    const to = `/agents/${encodeURIComponent(agent.name)}`;
    commands.push({ id: to, label: agent.name, detail: "agent", run: () => go(to) });
  }
  for (const job of jobs.data?.data ?? []) {
    const to = `/jobs/${job.id}`;
    commands.push({
      id: to,
      label: `${job.agent} ${job.id}`,
      detail: job.status,
      run: () => go(to),
    });
  }
  if (words.trim() !== "") {
    const label = `Search for ${words.trim()}`;
    commands.push({
      id: "search",
      label,
      detail: "search",
      run: () => go("/search", { q: words.trim() }),
    });
  }
  return commands;
}
