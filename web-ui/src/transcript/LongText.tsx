import { AnsiText } from "./AnsiText";
import { useToggle } from "./toggles";

const LINES = 14;
const CHARACTERS = 4_000;
/** More than this is not laid out at once. */
const MOST = 400_000;

/** Text in a fixed-width font. A long one shows its end, or its beginning, until it is opened. */
export function LongText({
  text,
  id,
  keeps = "start",
}: {
  text: string;
  id: string;
  /** Which part of a long text says most: a file's beginning, an output's end. */
  keeps?: "start" | "end";
}) {
  const [isOpen, toggle] = useToggle(id);
  if (text.trim() === "") return null;
  const short = shorten(text, keeps);
  const shown = isOpen ? text.slice(0, MOST) : short;
  return (
    <div>
      <pre className="overflow-x-auto rounded-md bg-raised px-2.5 py-2 font-mono text-xs [overflow-wrap:anywhere] whitespace-pre-wrap">
        <AnsiText text={shown} />
      </pre>
      {short.length < text.length && (
        <button type="button" onClick={toggle} className="pt-1 text-xs text-accent hover:underline">
          {isOpen ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`}
        </button>
      )}
      {isOpen && text.length > MOST && (
        <span className="pl-2 text-xs text-faint">
          the first {MOST.toLocaleString("en")}; the raw line has all
        </span>
      )}
    </div>
  );
}

function shorten(text: string, keeps: "start" | "end"): string {
  const cut = keeps === "start" ? text.slice(0, CHARACTERS) : text.slice(-CHARACTERS);
  const lines = cut.split("\n");
  if (lines.length <= LINES) return cut;
  return (keeps === "start" ? lines.slice(0, LINES) : lines.slice(-LINES)).join("\n");
}
