/** Logging in and out. */

import { post } from "../api/client";
import { forgetSecret, keepSecret } from "../api/secret";
import type { Schemas } from "../api/types";

const CODE = /^#code=([\w-]+)$/;

/** Log in with a one-time code or a token; the page keeps its half of the login. */
export async function logIn(credential: { code: string } | { token: string }): Promise<void> {
  const login = await post<Schemas["LoginDocument"]>("/login", credential);
  keepSecret(login.secret);
}

/** Log this browser out, or all browsers of the person, and show the login page. */
export async function logOut(everywhere: boolean): Promise<void> {
  await post("/logout", { everywhere });
  forgetSecret();
  location.reload();
}

/** Take the one-time code out of the address; null when there is none. */
export function takeCode(): string | null {
  const code = CODE.exec(location.hash)?.[1] ?? null;
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code;
}
