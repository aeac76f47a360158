import { useEffect, useState } from "react";

import { messageOf } from "../api/problem";
import { onOtherTab } from "../api/secret";
import { Button } from "../ui/Button";
import { logIn } from "./access";

/** The page before a login: it shows nothing of the fleet. */
export function Login({ problem }: { problem: unknown }) {
  const [token, setToken] = useState("");
  const [failure, setFailure] = useState(problem);
  const [isBusy, setBusy] = useState(false);
  // Another tab of this browser has logged in: so is this one.
  useEffect(() => onOtherTab((isLoggedIn) => isLoggedIn && location.reload()), []);
  const submit = async () => {
    setBusy(true);
    try {
      await logIn({ token: token.trim() });
      location.reload();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <main className="mx-auto flex min-h-full max-w-md flex-col justify-center gap-4 px-4 py-8">
      <title>Log in · nightherd</title>
      <h1 className="text-xl font-semibold">nightherd</h1>
      <p className="text-sm text-soft">
        On the machine of the daemon, run <code className="font-mono">nightherd open</code>. It
        opens this page and logs you in.
      </p>
      <form
        className="flex flex-col gap-2 rounded-lg border border-line bg-panel p-4"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <label className="flex flex-col gap-1 text-sm">
          <span>Or log in with a token</span>
          <input
            type="password"
            name="token"
            autoComplete="current-password"
            required
            value={token}
            onChange={(event) => setToken(event.target.value)}
            className="min-h-10 rounded-md border border-edge bg-page px-2 font-mono"
          />
        </label>
        <Button look="primary" type="submit" disabled={isBusy || token.trim() === ""}>
          Log in
        </Button>
        {failure !== null && (
          <p role="alert" className="text-sm text-bad">
            {messageOf(failure)}
          </p>
        )}
      </form>
      <p className="text-xs text-faint">
        An admin makes tokens with <code className="font-mono">nightherd token add NAME</code>.
      </p>
    </main>
  );
}
