import { Page } from "../ui/Page";

export default function RunsPage() {
  return <Page title="Runs">{null}</Page>;
}
