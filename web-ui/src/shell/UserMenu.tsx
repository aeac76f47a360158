import { useState } from "react";

import { Button } from "../ui/Button";
import { logOut } from "./access";
import { useMe } from "./session";
import { readTheme, setTheme, THEMES, type Theme } from "./theme";
import { notifyError } from "./toasts";

/** Who is logged in; theme and logout. */
export function UserMenu() {
  const me = useMe();
  const [theme, choose] = useState(readTheme);
  const leave = (everywhere: boolean) => void logOut(everywhere).catch(notifyError);
  return (
    <details className="rounded-md border border-line text-sm">
      <summary className="px-2 py-1.5 [overflow-wrap:anywhere] text-soft">
        {me.name} <span className="text-faint">({me.role})</span>
      </summary>
      <div className="flex flex-col gap-2 border-t border-line p-2">
        <label className="flex flex-col gap-0.5 text-xs text-faint">
          Theme
          <select
            value={theme}
            onChange={(event) => {
              const chosen = event.target.value as Theme;
              setTheme(chosen);
              choose(chosen);
            }}
            className="min-h-8 rounded-md border border-line bg-panel px-1 text-sm text-ink"
          >
            {THEMES.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <Button onClick={() => leave(false)}>Log out</Button>
        <Button onClick={() => leave(true)}>Log out everywhere</Button>
        <p className="text-xs text-faint">nightherd {me.version}</p>
      </div>
    </details>
  );
}
