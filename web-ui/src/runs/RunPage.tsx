import { Page } from "../ui/Page";

export default function RunPage() {
  return <Page title="Run">{null}</Page>;
}
