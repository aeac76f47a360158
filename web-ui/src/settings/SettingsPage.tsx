import { useMay, useMe } from "../shell/session";
import { Card, Page, Section } from "../ui/Page";
import { timeText } from "../ui/time";
import { Devices } from "./Devices";
import { Tokens } from "./Tokens";

/** This browser, its notifications, and who else may get in. */
export default function SettingsPage() {
  const me = useMe();
  const isAdmin = useMay("admin");
  return (
    <Page title="Settings">
      <Section title="You">
        <p className="text-sm">
          {me.name}, {me.role}
          {me.expires_at !== null && `; this login ends ${timeText(me.expires_at)}`}
        </p>
      </Section>
      <Devices />
      {isAdmin ? (
        <Tokens />
      ) : (
        <Card>
          <p className="p-4 text-sm text-faint">Admins manage tokens here.</p>
        </Card>
      )}
    </Page>
  );
}
