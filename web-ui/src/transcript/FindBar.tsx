import { useState } from "react";

import { messageOf } from "../api/problem";
import { Button } from "../ui/Button";

/** A field that finds words in the loaded part, and beyond it through the search. */
export function FindBar({
  words,
  matches,
  current,
  onWords,
  onGo,
  onClose,
  searchAll,
}: {
  words: string;
  matches: readonly number[];
  current: number | null;
  onWords: (words: string) => void;
  onGo: (seq: number) => void;
  onClose: () => void;
  searchAll?: (words: string) => Promise<number | null>;
}) {
  const [note, setNote] = useState("");
  const step = (direction: 1 | -1) => {
    const from = current ?? 0;
    const list = direction === 1 ? matches : matches.toReversed();
    const next = list.find((seq) => (seq - from) * direction > 0) ?? list[0];
    if (next !== undefined) onGo(next);
  };
  const search = () => {
    setNote("searching …");
    searchAll?.(words)
      .then((seq) => {
        setNote(seq === null ? "nothing found" : "");
        if (seq !== null) onGo(seq);
      })
      .catch((error: unknown) => setNote(messageOf(error)));
  };
  return (
    <form
      role="search"
      className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-1.5"
      onSubmit={(event) => {
        event.preventDefault();
        step(1);
      }}
    >
      <input
        type="search"
        aria-label="Find in the transcript"
        placeholder="Find in the loaded part"
        autoFocus
        value={words}
        onChange={(event) => {
          onWords(event.target.value);
          setNote("");
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") onClose();
        }}
        className="min-h-8 w-64 rounded-md border border-line bg-panel px-2 text-sm"
      />
      <span role="status" className="text-xs text-faint">
        {note || (words.trim() === "" ? "" : `${matches.length} in the loaded part`)}
      </span>
      <Button look="ghost" onClick={() => step(-1)} disabled={matches.length === 0}>
        Previous
      </Button>
      <Button look="ghost" type="submit" disabled={matches.length === 0}>
        Next
      </Button>
      {searchAll !== undefined && (
        <Button look="ghost" onClick={search} disabled={words.trim() === ""}>
          Search the whole job
        </Button>
      )}
      <Button look="ghost" onClick={onClose}>
        Close
      </Button>
    </form>
  );
}
