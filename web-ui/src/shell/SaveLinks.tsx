import { saveFile } from "../api/save";
import { useIsOnline } from "../live/live";
import { notifyError } from "./toasts";

/** What the API exports as files, to keep or to send: a button for each format. */
export function SaveLinks({
  path,
  name,
  formats,
}: {
  path: string;
  /** The file's name where the API gives it none. */
  name: string;
  /** Formats of the API, with the words for people. */
  formats: readonly (readonly [string, string])[];
}) {
  const isOnline = useIsOnline();
  return (
    <span className="flex flex-wrap gap-x-3">
      {formats.map(([format, text]) => (
        <button
          key={format}
          type="button"
          disabled={!isOnline}
          {...(!isOnline && { title: "The daemon does not answer" })}
          onClick={() => void saveFile(path, { format }, name).catch(notifyError)}
          className="inline-flex min-h-11 items-center text-accent underline disabled:text-faint md:min-h-0"
        >
          {text}
        </button>
      ))}
    </span>
  );
}
