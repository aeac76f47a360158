import "./styles.css";

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { logIn, takeCode } from "./shell/access";
import { App } from "./shell/App";
import { applyTheme } from "./shell/theme";

applyTheme();

/** Log in with the code of the address, if there is one; a code that is refused is shown on the login page. */
async function logInByAddress(): Promise<unknown> {
  const code = takeCode();
  if (code === null) return null;
  try {
    await logIn({ code });
    return null;
  } catch (error) {
    return error;
  }
}

const root = document.getElementById("app");
if (root !== null) {
  const loginProblem = await logInByAddress();
  createRoot(root).render(
    <StrictMode>
      <App loginProblem={loginProblem} />
    </StrictMode>,
  );
}
